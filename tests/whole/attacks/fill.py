"""Attacks that exhaust the machine, or hang."""

from whole.attacks.attack import EXHAUST, HANG, Attack, falls, stands
from whole.attacks.result import broke, either, grew, lost, made, multiplied, spoiled, swelled, undeserved, wrote

ATTACKS = (
    # Exhaust.
    Attack(
        "memory, all at once",
        EXHAUST,
        "hoard = np.ones(1 << 28)",
        grew,
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "memory, bit by bit",
        EXHAUST,
        """
        hoard = []
        for _ in range(60): hoard.append(np.ones(5 << 20)); time.sleep(0.02)
        """,
        grew,
        falls("nothing limits it"),
        solved=True,
        later=True,
        slow=True,
    ),
    Attack(
        "memory that no process shows",
        EXHAUST,
        """
        hoard = []
        for k in range(28):
            try: hoard.append(mmap.mmap(-1, 50 << 20))
            except OSError: hoard.append(mmap.mmap(os.open("/dev/zero", os.O_RDWR), 50 << 20))
            hoard[-1].write(b"x" * (50 << 20))
            hoard[-1].madvise(mmap.MADV_DONTNEED); print("wrote", 50 * (k + 1), "MB")
        """,
        wrote(1200),
        falls("nothing limits it"),
        solved=True,
        later=True,
        seconds=24,
    ),
    Attack(
        "memory in files without a name",
        EXHAUST,
        """
        hoard = []
        for k in range(40):
            hoard.append(os.memfd_create("x")); os.write(hoard[-1], b"x" * (50 << 20))
            print("wrote", 50 * (k + 1), "MB")
        """,
        wrote(1200),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "memory in pipes",
        EXHAUST,
        """
        import fcntl
        hoard = []
        for k in range(1300):
            hoard.append(os.pipe()); os.set_blocking(hoard[-1][1], False); fcntl.fcntl(hoard[-1][1], 1031, 1 << 20)
            os.write(hoard[-1][1], b"x" * (1 << 20)); k % 50 or print("wrote", k, "MB")
        """,
        wrote(1200),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "a full disc",
        EXHAUST,
        """
        for k in range(45):
            for place in (Path.cwd(), Path(tempfile.gettempdir()), Path("/dev/shm")):
                try: Path(place, f"mallory{k}").write_bytes(b"x" * (10 << 20)); print("wrote", 10 * (k + 1), "MB")
                except OSError: pass
        """,
        wrote(300),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "a full disc, among the grader's own files",
        EXHAUST,
        """
        mounts = [line.split()[4] for line in open("/proc/self/mountinfo") if "grader" in line.split()[4]]
        for k in range(45):
            for place in (Path(sys.modules["grader"].__file__).parent, *mounts):
                try: Path(place, f"mallory{k}").write_bytes(b"x" * (10 << 20)); print("wrote", 10 * (k + 1), "MB")
                except OSError: pass
        """,
        wrote(300),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "very many files",
        EXHAUST,
        """
        for k in range(150_000):
            os.close(os.open(f"mallory{k}", os.O_CREAT))
            if k % 10_000 == 0: print("made", k)
        """,
        made(100_000),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "folders too deep to remove",
        EXHAUST,
        """
        for k in range(3000): os.mkdir("d"); os.chdir("d"); print("made", k)
        """,
        either(broke, spoiled),
        falls("what clears up after it follows them down, and gives up"),
        solved=True,
        later=True,
    ),
    Attack(
        "folders that are locked",
        EXHAUST,
        r"""
        for name in (b"a\xff", b"b\n", b"-rf"):
            os.makedirs(name + b"/d/e"); os.mkfifo(name + b"/d/p"); os.chmod(name + b"/d", 0); os.chmod(name, 0)
        """,
        either(broke, spoiled),
        stands("nobody removes them"),
        solved=True,
        later=True,
    ),
    Attack(
        "all descriptors",
        EXHAUST,
        """
        hoard = []
        for k in range(15_000): hoard.append(os.open("/dev/null", 0)); k % 1000 or print("made", k)
        """,
        made(10_000),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "a fork bomb",
        EXHAUST,
        """
        for _ in range(300):
            if os.fork() == 0: time.sleep(4); os._exit(0)
        time.sleep(0.5)
        """,
        either(multiplied, broke),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "a thread bomb",
        EXHAUST,
        """
        threading.stack_size(1 << 16)
        for _ in range(4000): threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
        """,
        multiplied,
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "a flood of output",
        EXHAUST,
        """
        from IPython.display import display
        for _ in range(40): display({"text/html": "x" * 1_000_000}, raw=True)
        """,
        either(swelled, broke),
        falls("only streams are cut"),
        solved=True,
        walls=False,
    ),
    Attack(
        "a flood on the descriptors",
        EXHAUST,
        """
        for fd in (1, 2):
            for _ in range(40): os.write(fd, b"x" * 1_000_000 + b"\\n")
        """,
        either(swelled, broke),
        falls("a stream is cut by its lines, however long"),
        solved=True,
        walls=False,
    ),
    Attack(
        "a huge result and a huge traceback",
        EXHAUST,
        """
        class Loud(Exception):
            __repr__ = __str__ = lambda self: "x" * 30_000_000
        display(Loud())
        raise Loud
        """,
        either(swelled, broke),
        falls("results and errors are not cut"),
        solved=True,
        walls=False,
    ),
    Attack(
        "an endless problem",
        EXHAUST,
        """
        from grader.exercises.answers import Problem
        answering(lambda answer: Problem("error", "E" * 2_500_000, "x\\n\\n" * 1_000_000))
        """,
        either(swelled, broke),
        falls("what the check says is not cut"),
        solved=True,
        walls=False,
    ),
    Attack(
        "a number of a million digits",
        EXHAUST,
        """
        sys.set_int_max_str_digits(0)
        def block_matmul(A, B):
            return [[10 ** 10 ** 6 for _ in B[0]] for _ in A]
        """,
        either(broke, undeserved),
        stands("it is not close to anything"),
        into="block_matmul",
        walls=False,
        seconds=4,
        slow=True,
    ),
    Attack(
        "lists in themselves",
        EXHAUST,
        """
        def block_matmul(A, B):
            answer = []; answer.append(answer)
            return answer
        """,
        either(broke, undeserved),
        stands("too much recursion is an error like any other"),
        into="block_matmul",
        walls=False,
        slow=True,
    ),
    Attack(
        "a dict of a million keys",
        EXHAUST,
        """
        def block_matmul(A, B):
            return dict.fromkeys(map(str, range(1_000_000)), 1.0)
        """,
        either(broke, undeserved, grew, swelled),
        stands("it is not a list"),
        into="block_matmul",
        walls=False,
        seconds=8,
        slow=True,
    ),
    # Hang.
    Attack(
        "swallow every interruption",
        HANG,
        """
        while True:
            try:
                while True: sum(range(9))
            except BaseException: pass
        """,
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        middle=True,
        seconds=3,
        slow=True,
    ),
    Attack(
        "loop in C, deaf to signals",
        HANG,
        "sum(itertools.repeat(0))",
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        middle=True,
        seconds=3,
    ),
    Attack(
        "take away the alarm",
        HANG,
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        signal.signal = signal.setitimer = lambda *a: None
        while True: pass
        """,
        either(broke, lost),
        stands("an interrupt reaches Python by another thread"),
        solved=True,
        middle=True,
        seconds=3,
        slow=True,
    ),
    Attack(
        "stop oneself",
        HANG,
        "os.kill(os.getpid(), signal.SIGSTOP)",
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        middle=True,
        seconds=3,
    ),
    Attack(
        "a thread that keeps the interpreter",
        HANG,
        """
        sys.setswitchinterval(1e6)
        threading.Thread(target=lambda: sum(itertools.repeat(0)), daemon=True).start()
        """,
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        middle=True,
        seconds=3,
        slow=True,
    ),
    Attack(
        "an answer that does not end",
        HANG,
        """
        class Endless:
            def __del__(self):
                while True:
                    try: time.sleep(1)
                    except BaseException: pass
        def case3(a, b, *, mesh):
            Endless()
        """,
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        into="case3",
        seconds=3,
        slow=True,
    ),
    Attack(
        "crash",
        HANG,
        "ctypes.string_at(0)",
        either(broke, lost),
        falls("a dead kernel: the hand-in has no marks"),
        solved=True,
        middle=True,
    ),
    Attack(
        "kill oneself at the last moment",
        HANG,
        """
        threading.Timer(11, os.kill, (os.getpid(), signal.SIGKILL)).start()
        for _ in range(4): time.sleep(3)
        """,
        either(broke, lost),
        falls("a dead kernel: the hand-in has no marks"),
        solved=True,
        middle=True,
        seconds=33,
        slow=True,
    ),
    Attack(
        "go on after the end",
        HANG,
        """
        os._exit = sys.exit = lambda *a: None
        threading.Thread(target=time.sleep, args=(1000,)).start()
        """,
        either(broke, lost),
        stands("the kernel is killed in the end"),
        solved=True,
        middle=True,
        later=True,
        slow=True,
    ),
    Attack(
        "ask for input",
        HANG,
        "input('?'); sys.stdin.read(); open(0).read()",
        either(broke, lost),
        stands("there is no standard input"),
        solved=True,
        middle=True,
    ),
    Attack(
        "a drip on the wire",
        HANG,
        """
        while True:
            try: say(""); time.sleep(0.02)
            except BaseException: pass
        """,
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        middle=True,
        walls=False,
        seconds=3,
        slow=True,
    ),
    Attack(
        "empty lines without end",
        HANG,
        """
        while True:
            try: say("\\n" * 900_000)
            except BaseException: pass
        """,
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        middle=True,
        walls=False,
        seconds=3,
        slow=True,
    ),
    Attack(
        "memory behind a drip on the wire",
        EXHAUST,
        """
        def drip():
            while True: say(""); time.sleep(0.01)
        threading.Thread(target=drip, daemon=True).start()
        hoard = []
        for _ in range(60): hoard.append(np.ones(5 << 20)); time.sleep(0.02)
        """,
        grew,
        falls("nothing limits it"),
        solved=True,
        later=True,
        slow=True,
    ),
)
