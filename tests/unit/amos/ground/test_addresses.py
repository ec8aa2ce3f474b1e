import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.amos import P, scope

from amrita_plugin_memory.amos.errors import MemoryURIError
from amrita_plugin_memory.amos.ground import layout, names, uris
from amrita_plugin_memory.kernel.errors import InvalidInput, InvalidName

component = st.text("abcXYZ019_-.@+# ()杭州é·", min_size=1, max_size=8).filter(names.is_component)

FORMS = [
    ("amos://shared/soul", "shared/soul.md"),
    ("amos://shared/workflows/w", "shared/workflows/w.md"),
    ("amos://shared/knowledge/d/e", "shared/knowledge/d/e.md"),
    ("amos://users/a/profile", "users/a/profile.md"),
    ("amos://users/a/soul", "users/a/soul.md"),
    ("amos://users/a/acl", "users/a/acl.json"),
    ("amos://users/a/workflows/w", "users/a/workflows/w.md"),
    ("amos://users/a/knowledge/d/e", "users/a/knowledge/d/e.md"),
    ("amos://users/a/sessions/s/summary", "users/a/sessions/s/summary.md"),
    ("amos://users/a/sessions/s/messages", "users/a/sessions/s/messages.jsonl"),
    ("amos://users/a/agents/g/soul", "users/a/agents/g/soul.md"),
    ("amos://users/a/agents/g/manifest", "users/a/agents/g/manifest.json"),
    ("amos://users/a/agents/g/sessions/s/messages", "users/a/agents/g/sessions/s/messages.jsonl"),
    ("amos://users/a/agents/g/sessions/s/summary", "users/a/agents/g/sessions/s/summary.md"),
    ("amos://users/a/assets/tool/t", "users/a/assets/tools/t"),
    ("amos://shared/assets/app/t", "shared/assets/APPs/t"),
    ("amos://tasks/pending/0123456789abcdef", "tasks/pending/task_0123456789abcdef.json"),
]


@pytest.mark.parametrize(("uri", "path"), FORMS)
def test_every_form_of_the_protocol_is_read_both_ways(uri, path):
    assert str(uris.to_path(uri)) == path
    assert uris.from_path(path) == uri


@given(component, component, component)
def test_an_address_reads_back_as_the_same_path(actor, domain, entity):
    user = layout.user_dir(actor)
    for path in (
        layout.knowledge(user, domain, entity),
        layout.workflow(user, entity),
        layout.messages(scope(actor, domain, entity)),
    ):
        assert uris.to_path(uris.from_path(path)) == path


@given(component, component)
def test_a_short_address_means_the_users_own_before_the_shared_one(domain, entity):
    mine, ours = (layout.knowledge(owner, domain, entity) for owner in layout.owners(scope()))
    assert uris.short(mine) == uris.short(ours)
    assert uris.candidates(uris.short(mine), scope()) == (mine, ours)


def test_short_addresses_name_workflows_and_assets_too():
    assert uris.candidates("amos://workflows/w", scope())[0] == P("users/u1/workflows/w.md")
    assert uris.candidates("amos://assets/tool/t", scope())[1] == P("shared/assets/tools/t")
    assert uris.short("users/a/assets/tools/t/definition.md") == "amos://assets/tool/t"


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "http://x",
        "amos://",
        "amos://x/y",
        "amos://users",
        "amos://users/a/nothing",
        "amos://users/a/sessions/s",
        "amos://shared/profile",
    ],
)
def test_what_names_nothing_is_refused(uri):
    with pytest.raises(MemoryURIError):
        uris.candidates(uri, scope())


@pytest.mark.parametrize(
    "uri",
    [
        "amos://users/../profile",
        "amos://users/%2e%2e/profile",
        "amos://users/a%2Fb/profile",
        "amos://tasks/pending/..%2f..%2fx",
    ],
)
def test_an_address_cannot_leave_the_root(uri):
    with pytest.raises((InvalidName, InvalidInput)):
        uris.to_path(uri)


@given(st.text(max_size=30))
def test_a_relative_path_from_outside_stays_inside_or_is_refused(text):
    try:
        path = layout.relative(text)
    except InvalidInput:
        return
    assert not path.is_absolute()
    assert ".." not in path.parts
    assert "\\" not in text


def test_paths_are_compared_by_component_and_not_by_prefix():
    assert layout.is_within(P("users/123/x"), P("users/123"))
    assert not layout.is_within(P("users/1234/x"), P("users/123"))
    assert not layout.is_within(P("users/123/../1234"), P("users/123"))
    assert not layout.is_visible(P("users/12345/profile.md"), "1234")
    assert layout.is_visible(P("shared/soul.md"), "1234")


@given(component, component)
def test_two_scopes_share_a_session_folder_only_when_they_are_equal(one, other):
    assume(one != other)
    assert layout.session_dir(scope(one)) != layout.session_dir(scope(other))
    assert layout.session_dir(scope("a", one)) != layout.session_dir(scope("a", other))
    assert layout.session_dir(scope("a", one, "s")) != layout.session_dir(scope("a", None, "s"))
