"""Attacks that fake a pass, or forge what the worker says."""

from whole.attacks.attack import FAKE, FORGE, IN_KERNEL, NEVER_TEXT, SOCKETS, Attack, falls, stands
from whole.attacks.result import (
    blamed,
    broke,
    controlling,
    either,
    grew,
    left,
    lost,
    points_over,
    spoiled,
    swelled,
    undeserved,
    unescaped,
)

ATTACKS = (
    # Fake a pass.
    Attack(
        "another check",
        FAKE,
        """
        import grader
        grader.check = check = lambda name, answer: {"block_matmul": 2.0, "case3": 4.0}[name]
        """,
        undeserved,
        falls(IN_KERNEL),
        walls=False,
    ),
    Attack(
        "another judge",
        FAKE,
        """
        from grader.exercises.verdict import Outcome, Verdict
        try: import grader.judging.judge
        except ImportError: pass
        everywhere("judge", lambda e, cases, answers: Verdict(e.name, (Outcome.earned(e.name, "values", e.points),)))
        """,
        undeserved,
        falls(IN_KERNEL),
        walls=False,
    ),
    Attack(
        "a verdict whose points are its worth",
        FAKE,
        """
        from grader.exercises.verdict import Verdict
        Verdict.points = property(lambda self: self.worth)
        """,
        undeserved,
        falls(IN_KERNEL),
        walls=False,
    ),
    Attack(
        "a formatter that shows other numbers",
        FAKE,
        """
        formatter = get_ipython().display_formatter.formatters["text/plain"]
        formatter.for_type(sys.modules["grader.checking"].Mark, lambda value, printer, cycle: printer.text("2.0"))
        """,
        undeserved,
        falls("the mark is what a kernel shows"),
        walls=False,
    ),
    Attack(
        "a display hook that shows other numbers",
        FAKE,
        """
        hook = type(get_ipython().displayhook)
        shown = hook.__call__
        hook.__call__ = lambda self, value=None: shown(self, 2.0)
        """,
        undeserved,
        falls("the mark is what a kernel shows"),
        walls=False,
    ),
    Attack(
        "an AST transformer",
        FAKE,
        """
        import ast
        class Turn(ast.NodeTransformer):
            def visit_Call(self, node):
                return ast.Constant(2.0) if getattr(node.func, "id", "") == "check" else node
        get_ipython().ast_transformers.append(Turn())
        """,
        undeserved,
        falls("the shell that runs the check is the student's"),
        walls=False,
    ),
    Attack(
        "a min that takes the greater",
        FAKE,
        """
        least = min
        builtins.min = lambda *a, **k: a[1] if len(a) == 2 and isinstance(a[0], float) else least(*a, **k)
        """,
        undeserved,
        falls(IN_KERNEL),
        walls=False,
    ),
    Attack(
        "a string that equals everything",
        FAKE,
        """
        class Anything(str):
            __eq__ = lambda self, other: True
            __hash__ = str.__hash__
        def block_matmul(A, B):
            return [[Anything() for _ in B[0]] for _ in A]
        """,
        undeserved,
        stands("answers become plain values first"),
        into="block_matmul",
        walls=False,
    ),
    Attack(
        "everything is close",
        FAKE,
        """
        np.isclose = np.allclose = lambda *a, **k: np.bool_(True)
        def block_matmul(A, B):
            return [[np.zeros((A[0][0].shape[0], B[0][0].shape[1])) for _ in B[0]] for _ in A]
        """,
        undeserved,
        falls("NumPy is the student's too"),
        into="block_matmul",
        walls=False,
    ),
    Attack(
        "NaN for an answer",
        FAKE,
        """
        def block_matmul(A, B):
            return [[np.full((len(A[0][0]), len(B[0][0][0])), np.nan) for _ in B[0]] for _ in A]
        """,
        undeserved,
        stands("NaN is close to nothing"),
        into="block_matmul",
        walls=False,
    ),
    Attack(
        "a record for the mark in one's own output",
        FAKE,
        """
        from IPython.display import display
        record = [{"exercise": "case3", "check": "values", "points": 4.0, "worth": 4.0, "mistake": "", "words": ""}]
        display({"text/plain": "4.0"}, raw=True, metadata={"grader": record, "nbgrader": {"grade": True, "points": 4}})
        4.0
        """,
        undeserved,
        stands("only check cells are read"),
        walls=False,
    ),
    Attack(
        "leave it to the compiler, behind an idle shard_map",
        FAKE,
        """
        def case3(a, b, *, mesh):
            return jax.shard_map(lambda c: c, mesh=mesh, in_specs=P(), out_specs=P())(a @ b)
        """,
        points_over(2),
        stands("the judge compares with what is compiled"),
        into="case3",
        walls=False,
    ),
    Attack(
        "move operands unseen, behind a * 1",
        FAKE,
        """
        def case3(a, b, *, mesh):
            return jax.shard_map(lambda a, b: a @ b, mesh=mesh, in_specs=P(), out_specs=P())(a * 1, b * 1)
        """,
        points_over(2),
        stands("the judge compares with what is compiled"),
        into="case3",
        walls=False,
    ),
    Attack(
        "collectives out of sight, in a composite",
        FAKE,
        """
        def case3(a, b, *, mesh):
            gathered = lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True)
            hidden = jax.lax.composite(gathered, "far.away")
            def body(a, b):
                return jax.lax.psum(a @ jax.lax.dynamic_slice_in_dim(
                    hidden(b), jax.lax.axis_index("x") * b.shape[0], b.shape[0]), "x")
            return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)
        """,
        points_over(3),
        stands("the judge sees them there too"),
        into="case3",
        walls=False,
    ),
    Attack(
        "work without end, in a loop of which nobody knows the end",
        FAKE,
        """
        def case3(a, b, *, mesh):
            def body(a, b):
                end = 99999 + (a[0, 0] > 1e30).astype(int)
                turn = lambda c: (c[0] + 1, jnp.eye(8) @ c[1])
                extra = jax.lax.while_loop(lambda c: c[0] < end, turn, (0, jnp.ones((8, 8))))[1][0, 0] - 1
                return jax.lax.psum(a @ b, "x") + extra
            return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P(), check_vma=False)(a, b)
        """,
        points_over(3),
        falls("XLA counts such a loop once"),
        into="case3",
        walls=False,
    ),
    Attack(
        "leave it to the compiler, beside a sum of nothing",
        FAKE,
        """
        def case3(a, b, *, mesh):
            whole = lambda c: jax.lax.psum(c, "x")
            summed = jax.shard_map(whole, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
            c = a @ b
            return jax.lax.with_sharding_constraint(c + summed(c)[:0].sum(), NamedSharding(mesh, P()))
        """,
        points_over(2),
        stands("the judge compares with what is compiled"),
        into="case3",
        walls=False,
    ),
    Attack(
        "leave it to the compiler, beside a gathering of nothing",
        FAKE,
        """
        def case3(a, b, *, mesh):
            whole = lambda c: jax.lax.all_gather(c, "x", axis=0, tiled=True)
            gathered = jax.shard_map(whole, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)
            c = a @ b
            return jax.lax.with_sharding_constraint(c + gathered(c)[:0].sum(), NamedSharding(mesh, P()))
        """,
        points_over(2),
        stands("the judge compares with what is compiled"),
        into="case3",
        walls=False,
    ),
    # Forge what the worker says.
    Attack(
        "a mark on the wire",
        FORGE,
        """
        say(*({"check": name, key: value} for name in ("block_matmul", "case3") for value in (4.0, [4.0] * 5, True)
              for key in ("answers", "points", "verdict", "outcomes")))
        """,
        either(undeserved, broke),
        falls(SOCKETS),
        walls=False,
    ),
    Attack(
        "marks beyond measure on the wire",
        FORGE,
        """
        for points in (float("nan"), float("inf"), -1e308, 1e400):
            outcome = {"exercise": "case3", "check": "values", "points": points, "worth": points, "words": ""}
            say({"check": "case3", "answers": [{"value": points}] * 5, "outcomes": [outcome]}, outcome)
        """,
        either(undeserved, broke),
        falls(SOCKETS),
        walls=False,
    ),
    Attack(
        "outputs for the check cells on the wire",
        FORGE,
        """
        mark = {"output_type": "execute_result", "data": {"text/plain": "4.0"}, "metadata": {}, "execution_count": 1}
        say(*({"cell": k, "outputs": [mark]} for k in [*range(-9, 40), 2**70, -(2**70), 1.0, True, None, "2", [2]]))
        """,
        either(undeserved, broke),
        falls(SOCKETS),
        walls=False,
    ),
    Attack(
        "a reply of the judge",
        FORGE,
        """
        right = {"exercise": "case3", "check": "values", "points": 4.0, "worth": 4.0, "mistake": "", "words": ""}
        say({"outcomes": [right], "where": "", "html": "<b>4 of 4</b>", "text": "4 of 4"})
        """,
        either(undeserved, broke),
        falls(SOCKETS),
        walls=False,
    ),
    Attack(
        "an early end, and everything twice",
        FORGE,
        """
        for _ in range(2): say(*[{"check": "case3", "answers": []}] * 500, {"end": True}, {"end": True})
        """,
        either(undeserved, broke, spoiled),
        falls(SOCKETS),
        later=True,
        walls=False,
    ),
    Attack(
        "noise on the wire",
        FORGE,
        r"""
        say("[" * 100_000, '{"a":' * 50_000, "\0\x1b\ud7ff", '{"cell": 1e999, "outputs": 7}', "9" * 10_000, '"x"')
        for fd in range(3, 64):
            try: os.write(fd, b"\xff\xfe{\"cell\": 0\n{\"check\": {}}\n")
            except OSError: pass
        """,
        either(broke, lost),
        falls(SOCKETS),
        solved=True,
        middle=True,
        walls=False,
    ),
    Attack(
        "a line without an end",
        FORGE,
        """
        while True: say("x" * 1_000_000)
        """,
        either(broke, grew, lost),
        falls(SOCKETS),
        solved=True,
        middle=True,
        walls=False,
        seconds=8,
    ),
    Attack(
        "a million small outputs on the wire",
        FORGE,
        """
        small = {"output_type": "stream", "name": "stdout", "text": "x"}
        for _ in range(4): say({"cell": 0, "outputs": [small] * 250_000})
        """,
        either(broke, swelled, grew),
        falls(SOCKETS),
        walls=False,
        seconds=8,
    ),
    Attack(
        "large outputs on the wire",
        FORGE,
        """
        for k in range(12):
            say({"cell": k, "outputs": [{"output_type": "stream", "name": "stdout", "text": "x" * 15_000_000}]})
        """,
        either(broke, swelled, grew),
        falls(SOCKETS),
        walls=False,
    ),
    Attack(
        "an array larger than memory",
        FORGE,
        """
        array = {"dtype": "float64", "shape": [9999999999999], "data": base64.b64encode(b"12345678").decode()}
        everywhere("to_json", lambda answer: {"value": {"value": {"array": array}, "moved": ""}})
        """,
        either(broke, undeserved, grew),
        stands(NEVER_TEXT),
        later=True,
        walls=False,
    ),
    Attack(
        "an archive for an array",
        FORGE,
        """
        file = io.BytesIO()
        np.savez_compressed(file, a=np.zeros(30_000_000))
        array = {"dtype": "float64", "shape": [30_000_000], "data": base64.b64encode(file.getvalue()).decode()}
        everywhere("to_json", lambda answer: {"value": {"value": {"array": array}, "moved": ""}})
        """,
        either(broke, undeserved, grew),
        stands(NEVER_TEXT),
        later=True,
        walls=False,
    ),
    Attack(
        "a pickle for an array",
        FORGE,
        """
        class Payload:
            def __reduce__(self): return exec, (f"open({str(ROOM / 'loot/mallory')!r}, 'w').write({MARK!r})",)
        file = io.BytesIO()
        np.save(file, np.array([Payload()], object), allow_pickle=True)
        array = {"dtype": "object", "shape": [1], "data": base64.b64encode(file.getvalue()).decode()}
        everywhere("to_json", lambda answer: {"value": {"value": {"array": array}, "moved": ""}})
        """,
        either(left, undeserved, broke),
        stands(NEVER_TEXT),
        walls=False,
    ),
    Attack(
        "answers of the wrong kind",
        FORGE,
        """
        kinds = itertools.cycle([
            None, 4.0, "x", {"ask": [{"dict": []}, {"dict": []}, ""]}, {"layout": [[1], "f4", []]}, {"tuple": []},
            {"problem": ["won", "", ""]}, {"float": "nan"}, {"value": {"problem": ["a", "b", "c"]}}, [[]]])
        everywhere("to_json", lambda answer: next(kinds))
        """,
        either(broke, undeserved),
        stands(NEVER_TEXT),
        later=True,
        walls=False,
    ),
    Attack(
        "nine million objects for answers",
        FORGE,
        """
        say('{"check": "case3", "answers": [' + "{}," * 8_999_999 + "{}]}")
        """,
        either(broke, grew, spoiled),
        falls(SOCKETS),
        later=True,
        walls=False,
        slow=True,
    ),
    Attack(
        "an entry of two gigabytes",
        FORGE,
        """
        import grader.exercises.as_json as wire
        two = wire.to_json(np.zeros(2, np.float32))
        everywhere("to_json", lambda answer: {"value": {"value": {"cast": {"dtype": "S1900000000", "array": two}},
                                                        "moved": ""}})
        """,
        either(broke, undeserved, grew, blamed),
        stands(NEVER_TEXT),
        later=True,
        walls=False,
    ),
    Attack(
        "a span of time for an answer",
        FORGE,
        """
        import grader.exercises.as_json as wire
        two = wire.to_json(np.zeros(2, np.float32))
        everywhere("to_json", lambda answer: {"value": {"value": {"cast": {"dtype": "m8[s]", "array": two}},
                                                        "moved": ""}})
        """,
        either(broke, undeserved, blamed),
        stands(NEVER_TEXT),
        walls=False,
    ),
    Attack(
        "a description for an answer",
        FORGE,
        """
        odd = [{"laid": [1]}, {"mesh": [2]}, {"sketch": {}}, {"ask": {}}, {"layout": {"shape": [1 << 40]}}, {"each": 7}]
        kinds = itertools.cycle({"value": {"value": value, "moved": ""}} for value in odd)
        everywhere("to_json", lambda answer: next(kinds))
        """,
        either(broke, undeserved, blamed),
        stands(NEVER_TEXT),
        walls=False,
        slow=True,
    ),
    Attack(
        "text that is no text",
        FORGE,
        r"""
        print("\ud800 \udfff \0")
        def block_matmul(A, B): raise ValueError("\ud800\udfff\0")
        def case3(a, b, *, mesh): return "\ud800"
        """,
        broke,
        stands("what cannot be written is replaced"),
        middle=True,
        walls=False,
    ),
    Attack(
        "a script in an error",
        FORGE,
        """
        def case3(a, b, *, mesh):
            raise type("<script>alert(1)</script>", (Exception,), {})("</p><script>alert(2)</script>")
        """,
        unescaped,
        stands("the card is made by the same words, and escapes them"),
        into="case3",
        walls=False,
    ),
    Attack(
        "an error that writes to the terminal",
        FORGE,
        r"""
        def case3(a, b, *, mesh):
            raise ValueError("\x1b]0;owned\x07\x1b[2J\x1b[31mgraded: 4 of 4")
        """,
        controlling,
        falls("errors are kept as they come"),
        into="case3",
        walls=False,
    ),
)
