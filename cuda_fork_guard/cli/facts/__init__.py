"""What `doctor` knows: one module a topic, each handing out plain JSON values.

Nothing in here loads libcuda, wakes CUDA, fixes a start method or imports a framework. Where a function looks at files
or variables, it is told where (`root`, `environ`), so that every machine can be tried on any other.
"""
