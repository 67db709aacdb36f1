"""Attacks that crash the evaluator with a bad artefact."""

from whole.attacks.attack import CRASH, Attack, falls, stands
from whole.attacks.result import controlling, crashed, either, left

ATTACKS = (
    # Crash the evaluator with a bad artefact.
    Attack(
        "random bytes for a program",
        CRASH,
        "deliver(lambda artefact: os.urandom(5000))",
        crashed,
        stands("reading them is an error like any other"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "half a program",
        CRASH,
        "deliver(lambda artefact: artefact[:len(artefact) // 2])",
        crashed,
        stands("reading it is an error like any other"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a program with flipped bits",
        CRASH,
        """
        import random
        def flip(artefact):
            bits, draw = bytearray(artefact), random.Random(66)
            for _ in range(20): bits[draw.randrange(len(bits))] ^= 1 << draw.randrange(8)
            return bytes(bits)
        deliver(flip)
        """,
        crashed,
        stands("most often it is not read at all"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a callback that is not there",
        CRASH,
        """
        deliver(lambda artefact: rewritten(artefact, ending("stablehlo.custom_call @xla_ffi_python_cpu_callback(INPUT) "
            "{api_version = 4 : i32, backend_config = {index = 66666 : ui64}} "
            ": (TYPE) -> TYPE")))
        """,
        crashed,
        stands("XLA finds that it is no proper call"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a call of something unknown",
        CRASH,
        """
        call = 'stablehlo.custom_call @system(INPUT) {api_version = 2 : i32, backend_config = "id"} : (TYPE) -> TYPE'
        deliver(lambda artefact: rewritten(artefact, ending(call)))
        """,
        crashed,
        stands("XLA refuses it"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a factorisation of nothing, by its raw name",
        CRASH,
        """
        call = "stablehlo.custom_call @blas_strsm(INPUT) : (TYPE) -> TYPE"
        deliver(lambda artefact: rewritten(artefact, ending(call)))
        """,
        crashed,
        stands("XLA refuses it"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a factorisation that writes behind its result",
        CRASH,
        """
        big = "%big = stablehlo.constant dense<1.0> : tensor<4096x16xf32>\\n"
        call = ("%q:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%big) {api_version = 4 : i32, has_side_effect = true,"
                " mhlo.backend_config = {}} : (tensor<4096x16xf32>) -> (tensor<1x1xf32>, tensor<1xi32>, tensor<i32>)")
        deliver(lambda artefact: rewritten(artefact, ending("stablehlo.add INPUT, INPUT : TYPE",
                                                            before=big + call + "\\n")))
        """,
        crashed,
        stands("the judge of stock runs the function, and no program"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a call whose name writes to the terminal",
        CRASH,
        r"""
        call = 'stablehlo.custom_call @"\\1B[2Jmallory"(INPUT) : (TYPE) -> TYPE'
        deliver(lambda artefact: rewritten(artefact, ending(call)))
        """,
        either(controlling, crashed),
        stands("it prints no name of a call"),
        solved=True,
        middle=True,
        walls=False,
    ),
    Attack(
        "a program that needs much memory",
        CRASH,
        """
        def case3(a, b, *, mesh):
            return a @ b + jnp.sort(jax.random.normal(jax.random.key(0), (24, 1 << 25)), axis=1)[:, :1].sum()
        """,
        crashed,
        falls("nothing limits it"),
        solved=True,
        into="case3",
        later=True,
    ),
    Attack(
        "a program that does not end",
        CRASH,
        """
        def case3(a, b, *, mesh):
            def body(a, b):
                k = jax.lax.while_loop(lambda k: k >= 0, lambda k: (k + 1) % 7, jnp.int32(0))
                return jax.lax.psum(a @ b, "x") + k
            return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)
        """,
        crashed,
        falls("it gives up the whole hand-in"),
        solved=True,
        into="case3",
        later=True,
        seconds=6,
        slow=True,
    ),
    Attack(
        "a collective that not all reach",
        CRASH,
        """
        def case3(a, b, *, mesh):
            def body(a, b):
                part = a @ b
                return jax.lax.cond(jax.lax.axis_index("x") == 0, lambda c: jax.lax.psum(c, "x"), lambda c: c, part)
            return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(),
                                 check_vma=False)(a, b)
        """,
        crashed,
        stands("the judge reads that it would wait for ever"),
        solved=True,
        into="case3",
        later=True,
    ),
    Attack(
        "a collective that not all reach, out of sight",
        CRASH,
        """
        def case3(a, b, *, mesh):
            hidden = jax.lax.composite(lambda c: jax.lax.cond(jax.lax.axis_index("x") == 0,
                                       lambda c: jax.lax.psum(c, "x"), lambda c: c, c), "far.away")
            return jax.shard_map(lambda a, b: hidden(a @ b), mesh=mesh, in_specs=(P(None, "x"), P("x", None)),
                                 out_specs=P(), check_vma=False)(a, b)
        """,
        crashed,
        stands("the judge sees it there too"),
        solved=True,
        into="case3",
        later=True,
        seconds=6,
        slow=True,
    ),
    Attack(
        "regions in regions",
        CRASH,
        """
        deep, tail = 400, "}) : (tensor<i32>) -> TYPE\\n"
        body = "%i = stablehlo.constant dense<0> : tensor<i32>\\n"
        body += "".join(f'%c{k} = "stablehlo.case"(%i) ({{\\n' for k in range(deep))
        body += "stablehlo.return INPUT : TYPE\\n"
        body += "".join(f"{tail}stablehlo.return %c{k} : TYPE\\n" for k in reversed(range(1, deep))) + tail
        deliver(lambda artefact: rewritten(artefact, ending("stablehlo.add %c0, %c0 : TYPE", before=body)))
        """,
        crashed,
        stands("it is refused, or compiled"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
        seconds=8,
        slow=True,
    ),
    Attack(
        "functions that call each other",
        CRASH,
        """
        itself = "{\\n%y = func.call @f(%x) : (TYPE) -> TYPE\\nreturn %y : TYPE\\n}\\n"
        deliver(lambda artefact: rewritten(artefact, ending(
            "func.call @f(INPUT) : (TYPE) -> TYPE", "func.func private @f(%x: TYPE) -> TYPE " + itself)))
        """,
        crashed,
        stands("to follow it is too much recursion, an error like any other"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "two calls of two calls of two calls",
        CRASH,
        """
        pair = ("func.func private @f%d(%%x: TYPE) -> TYPE {\\n%%y = func.call @f%d(%%x) : (TYPE) -> TYPE\\n"
                "%%w = func.call @f%d(%%y) : (TYPE) -> TYPE\\nreturn %%w : TYPE\\n}\\n")
        last = "func.func private @f60(%x: TYPE) -> TYPE {\\nreturn %x : TYPE\\n}\\n"
        deliver(lambda artefact: rewritten(artefact, ending("func.call @f0(INPUT) : (TYPE) -> TYPE",
                "".join(pair % (k, k + 1, k + 1) for k in range(60)) + last)))
        """,
        crashed,
        stands("the cell's time is over, and nothing else is lost"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
        seconds=8,
        slow=True,
    ),
    Attack(
        "ten thousand operations",
        CRASH,
        """
        many = "".join(f"%m{k + 1} = stablehlo.add %m{k}, %m{k} : TYPE\\n" for k in range(10_000))
        deliver(lambda artefact: rewritten(artefact, ending("func.call @f(INPUT) : (TYPE) -> TYPE",
            "func.func private @f(%m0: TYPE) -> TYPE {\\n" + many + "return %m10000 : TYPE\\n}\\n")))
        """,
        crashed,
        stands("the cell's time is over, and nothing else is lost"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
        seconds=8,
        slow=True,
    ),
    Attack(
        "a mesh of a billion devices",
        CRASH,
        r"""
        deliver(lambda artefact: rewritten(artefact, lambda text: re.sub(
            r'<\["x"=(.*?)\]> {.*}', r'<["x"=\1, "z"=1000000000]>', text)))
        """,
        crashed,
        stands("XLA refuses it"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "groups of devices that are not there",
        CRASH,
        r"""
        deliver(lambda artefact: rewritten(artefact, lambda text: re.sub(
            r"dense<\[\[.*?\]\]> : tensor<\dx\dxi64>", f"dense<{[[*range(99)]]}> : tensor<1x99xi64>", text)))
        """,
        crashed,
        stands("reading it is an error like any other"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
        seconds=8,
    ),
    Attack(
        "a result of another shape than it says",
        CRASH,
        """
        huge = (jax.core.ShapedArray((1 << 20, 1 << 20), jnp.float32),)
        deliver(lambda artefact: rewritten(artefact, out_avals=huge))
        """,
        crashed,
        stands("JAX compares them"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a program for other devices",
        CRASH,
        """
        deliver(lambda artefact: rewritten(artefact, nr_devices=1 << 14))
        """,
        crashed,
        stands("JAX compares them"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a pickle in the tree of arguments",
        CRASH,
        """
        class Node: pass
        class Payload:
            def __reduce__(self): return exec, (f"open({str(ROOM / 'loot/mallory')!r}, 'w').write({MARK!r})",)
        jax.tree_util.register_pytree_node(Node, lambda n: ((1.0,), Payload()), lambda aux, c: Node())
        jax.export.register_pytree_node_serialization(Node, serialized_name="node", serialize_auxdata=pickle.dumps,
                                                      deserialize_auxdata=lambda aux: None)
        tree = jax.tree.structure(((Node(), 1.0), {}))
        deliver(lambda artefact: rewritten(artefact, in_tree=tree))
        """,
        either(left, crashed),
        stands("a node is made only by who has registered it"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "wait for data that nobody feeds",
        CRASH,
        """
        feed = '%t = stablehlo.create_token : !stablehlo.token\\n%w:2 = "stablehlo.infeed"(%t) '
        feed += '<{infeed_config = ""}> {mhlo.sharding = "{{replicated}, {maximal device=0}}"} '
        feed += ": (!stablehlo.token) -> (TYPE, !stablehlo.token)\\n"
        deliver(lambda artefact: rewritten(artefact, ending("stablehlo.add %w#0, INPUT : TYPE", before=feed)))
        """,
        crashed,
        stands("XLA refuses it, or the cell's time is over"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
        seconds=8,
        slow=True,
    ),
)
