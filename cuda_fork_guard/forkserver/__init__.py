"""A forkserver that is proved free of CUDA before it makes its first worker.

    context.py  what the user holds: the context, its Process, the Popen that starts a worker and hears its verdict
    server.py   the program's side of the server: launch it, hear its verdict, connect to it
    serve.py    the server's side: import the guard, then the preloads, prove, hand over to CPython's own server loop
    proof.py    what "clean" means for a server
    worker.py   the first thing a new worker does
    notice.py   what is said of a server that died
    cpython.py  the private parts of multiprocessing that all this stands on
    verdict.py  how a refusal travels from one process to another with its type

Built on CPython's own forkserver: its loop serves, its protocol carries the workers. The server is one of its own, so
that nobody else's use of multiprocessing's single global server is changed by it. Imports multiprocessing: nothing
outside start_method.py imports this package, and that only when called.
"""
