"""The questions of earlier lessons that later ones ask again; one module a lesson, of the lesson's name."""
