"""Attacks that leave something behind, and poison what the next hand-in will use."""

from whole.attacks.attack import LEAVE, POISON, SAME_USER, Attack, falls, stands
from whole.attacks.result import broke, either, leaked, left, lost, spoiled

ATTACKS = (
    # Leave something behind.
    Attack(
        "a daemon",
        LEAVE,
        """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0: stay()
            os._exit(0)
        """,
        left,
        falls("only the kernel itself is ended"),
    ),
    Attack(
        "a program of its own session",
        LEAVE,
        """
        subprocess.Popen(["sleep", "98765"], start_new_session=True)
        """,
        left,
        falls("only the kernel itself is ended"),
    ),
    Attack(
        "a spawned program",
        LEAVE,
        """
        os.posix_spawn("/bin/sleep", ["sleep", "98765"], {}, setsid=True)
        """,
        left,
        falls("only the kernel itself is ended"),
    ),
    Attack(
        "become another program",
        LEAVE,
        """
        os.execv("/bin/sh", ["sh", "-c", "sleep 98765 & sleep 98765"])
        """,
        either(broke, lost, left),
        falls("a kernel that answers no more: no marks, and a process left"),
        solved=True,
        middle=True,
    ),
    Attack(
        "a process made by hand",
        LEAVE,
        """
        if libc.syscall(56, 0x11, 0, 0, 0, 0) == 0: os.setsid(); stay()
        how = ctypes.create_string_buffer(struct.pack("8Q", 0, 0, 0, 0, 17, 0, 0, 0))
        if libc.syscall(435, how, 64) == 0: os.setsid(); stay()
        """,
        left,
        falls("only the kernel itself is ended"),
    ),
    Attack(
        "an exit handler and threads",
        LEAVE,
        """
        import atexit
        write = lambda: (ROOM / "loot/mallory").write_text(MARK)
        atexit.register(write)
        threading.Thread(target=lambda: (time.sleep(2), write())).start()
        """,
        left,
        falls("they run when the kernel ends"),
    ),
    Attack(
        "a note for the next",
        LEAVE,
        """
        mounts = [line.split()[4] for line in open("/proc/self/mountinfo") if "grader" in line.split()[4]]
        for place in (Path.home(), Path.cwd(), tempfile.gettempdir(), "/dev/shm", *mounts):
            try: Path(place, "mallory").write_text("canary" + f"-note-{TOKEN}")
            except OSError: pass
        """,
        leaked,
        falls("files stay where they were written"),
        after="""
        mounts = [line.split()[4] for line in open("/proc/self/mountinfo") if "grader" in line.split()[4]]
        for place in {Path.home(), Path.cwd(), tempfile.gettempdir(), "/dev/shm", *mounts}:
            if Path(place, "mallory").exists(): print(place, Path(place, "mallory").read_text())
        """,
    ),
    Attack(
        "a note in shared memory",
        LEAVE,
        """
        libc.shmat.restype = ctypes.c_void_p
        place = libc.shmat(libc.shmget(66, 100, 0o1666), None, 0)
        ctypes.memmove(place, b"canary" + f"-note-{TOKEN}".encode(), 30)
        """,
        leaked,
        falls("System V memory outlives its maker"),
        after="""
        libc.shmat.restype = ctypes.c_void_p
        place = libc.shmat(libc.shmget(66, 100, 0), None, 0)
        if place != ctypes.c_void_p(-1).value: print(ctypes.string_at(place, 100))
        """,
    ),
    # Poison what the next hand-in will use.
    Attack(
        "a module in site-packages",
        POISON,
        """
        for folder in sys.path:
            try: Path(folder, "sitecustomize.py").write_text(f"# {MARK}")
            except OSError: pass
        """,
        left,
        falls(SAME_USER),
    ),
    Attack(
        "the grader's own code",
        POISON,
        """
        import grader.exercises.verdict
        path = Path(grader.exercises.verdict.__file__)
        path.write_text(path.read_text() + f"\\n# {MARK}\\nVerdict.points = 0.0\\n")
        """,
        either(left, spoiled),
        falls(SAME_USER),
        later=True,
    ),
    Attack(
        "compiled code of the grader",
        POISON,
        """
        import grader.exercises.verdict, importlib.util
        path = Path(importlib.util.cache_from_source(grader.exercises.verdict.__file__))
        path.parent.mkdir(exist_ok=True); path.write_bytes(MARK.encode())
        """,
        left,
        falls(SAME_USER),
    ),
    Attack(
        "a start-up file of IPython",
        POISON,
        """
        for home in {Path.home(), ROOM / "home"}:
            place = home / ".ipython/profile_default/startup"
            place.mkdir(parents=True, exist_ok=True)
            (place / "00.py").write_text(f"import grader  # {MARK}\\ngrader.check = lambda *a: 0.0")
        """,
        either(left, spoiled),
        falls("the next kernel reads it"),
        later=True,
    ),
    Attack(
        "caches of JAX and Matplotlib",
        POISON,
        """
        import matplotlib
        for folder in (matplotlib.get_cachedir(), matplotlib.get_configdir(), ROOM / "home/.cache", "/compiled",
                       *filter(None, [jax.config.jax_compilation_cache_dir])):
            for path in [Path(folder, "matplotlibrc"), *Path(folder).glob("*")]:
                try: path.write_text(MARK)
                except OSError: pass
        """,
        either(left, spoiled),
        falls(SAME_USER),
        later=True,
    ),
    Attack(
        "the verdict on a program",
        POISON,
        """
        deliver(lambda artefact: rewritten(artefact, platforms=("tpu",)))
        """,
        either(broke, lost, spoiled),
        stands("it remembers no verdict"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "the verdict on a program, by its names",
        POISON,
        """
        tree = jax.tree.structure(((1, (2,)), {}))
        deliver(lambda artefact: rewritten(artefact, fun_name="x", in_tree=tree, module_kept_var_idx=(1, 0)))
        """,
        either(broke, lost, spoiled),
        stands("it remembers no verdict"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "the modules that were imported before",
        POISON,
        """
        jnp.matmul = np.matmul = jax.shard_map = None
        builtins.len = lambda x: 0
        sys.modules["grader.judging.judge"] = sys.modules["jax"] = sys.modules["json"] = None
        """,
        either(broke, spoiled),
        falls("a kernel without its modules answers no more"),
        later=True,
        walls=False,
    ),
)
