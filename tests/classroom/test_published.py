"""One setting says where the course is published; all links follow from it."""

import pytest

from grader.classroom.course.published import Published, published


def test_this_course_says_where_it_is_published_and_at_which_tag(root):
    here = published(root)
    assert here.tag.startswith("v")
    assert bool(here) == ("/" in here.repository)


def test_every_link_leads_to_the_lesson_at_the_tag():
    here = Published("owner/name", "v1.2")
    at = "course/07_matmul/07_matmul.ipynb"
    assert here.install == "git+https://github.com/owner/name@v1.2"
    assert here.colab("07_matmul") == f"https://colab.research.google.com/github/owner/name/blob/v1.2/{at}"
    assert here.kaggle("07_matmul").endswith(f"?src=https://github.com/owner/name/blob/v1.2/{at}")
    assert here.download("07_matmul") == f"https://raw.githubusercontent.com/owner/name/v1.2/{at}"
    assert here.notebook("index") == "https://github.com/owner/name/blob/v1.2/course/index.ipynb"


def test_a_repository_that_is_no_owner_and_name_is_told_what_it_should_be(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nversion = "1"\n[tool.many-devices]\nrepository = "https://github.com/owner/name"\n'
    )
    with pytest.raises(ValueError, match='should be "OWNER/NAME"'):
        published(tmp_path)
