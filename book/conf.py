"""Sphinx's settings for the book. `grader book` lays its pages out and calls Sphinx."""

from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from pygments.lexers.special import TextLexer

from grader.classroom.course.published import published

HERE = published(Path(__file__).parents[1])

project = html_title = "Many devices in JAX"
copyright = "text CC BY 4.0, code Apache 2.0"
html_show_sphinx = False
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
nb_execution_mode = "off"  # the outputs are those that the tests compare
nb_merge_streams = True
myst_enable_extensions = ["attrs_block", "deflist", "dollarmath"]
myst_heading_anchors = 3
default_role = "code"  # the docstrings' single backticks
python_use_unqualified_type_names = True
autodoc_typehints = "none"
add_module_names = False

html_theme = "sphinx_book_theme"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_copy_source = False
html_theme_options = {
    "show_toc_level": 2,
    "use_download_button": False,
}
if HERE:
    html_theme_options |= {
        "repository_url": HERE.page,
        "repository_branch": HERE.tag,
        "use_repository_button": True,
        "launch_buttons": {"colab_url": "https://colab.research.google.com"},
    }


def setup(app):
    """MathML, which browsers draw themselves, in place of a script from elsewhere; and two fences of ours."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    for fence in ("rooms", "classroom"):
        app.add_lexer(fence, TextLexer)


html_math_renderer = "mathml"


def _inline(translator, node):
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(translator, node):
    translator.body.append(f'<div class="math" tabindex="0">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode
