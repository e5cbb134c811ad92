"""Stacks of packages that are too heavy, or too old, to be installed for a test: read off the files that the package index
has for the version named, on the day named. Each line of a stack is one call, the outermost first; the last one forks.
"""

from __future__ import annotations

from typing import NamedTuple

SEEN = "2026-12-01"

# CPython 3.11's, below whoever starts a process.
START = """
multiprocessing/process.py:121 start
multiprocessing/context.py:281 _Popen
multiprocessing/popen_fork.py:19 __init__
multiprocessing/popen_fork.py:66 _launch
"""


class Recorded(NamedTuple):
    package: str
    version: str
    stack: str
    name: str  # expected in the message; "" for fork + exec, which gives none
    advice: str = ""
    user: bool = True  # the user's own code is on the stack
    seen: str = SEEN


RECORDED = (
    Recorded(
        "vllm", "0.33.0",
        """
        vllm/entrypoints/llm.py:341 __init__
        vllm/v1/engine/llm_engine.py:191 from_engine_args
        vllm/v1/engine/llm_engine.py:116 __init__
        vllm/v1/engine/core_client.py:119 make_client
        vllm/v1/engine/core_client.py:966 __init__
        vllm/v1/engine/core_client.py:699 __init__
        vllm/v1/engine/utils.py:1367 launch_core_engines
        vllm/v1/engine/utils.py:335 __init__
        """ + START,
        "vLLM", "VLLM_WORKER_MULTIPROC_METHOD=spawn",
    ),
    Recorded(  # the engine's process, itself forked, starts its workers
        "vllm", "0.33.0",
        """
        vllm/v1/engine/utils.py:335 __init__
        """ + START + """
        multiprocessing/process.py:314 _bootstrap
        multiprocessing/process.py:108 run
        vllm/v1/engine/core.py:1462 run_engine_core
        vllm/v1/engine/core.py:1172 __init__
        vllm/v1/engine/core.py:150 __init__
        vllm/v1/executor/abstract.py:120 __init__
        vllm/v1/executor/multiproc_executor.py:210 _init_executor
        vllm/v1/executor/multiproc_executor.py:856 make_worker_process
        """ + START,
        "vLLM", "VLLM_WORKER_MULTIPROC_METHOD=spawn", user=False,
    ),
    Recorded(
        "apache-airflow-task-sdk", "1.3.2",
        """
        airflow/sdk/execution_time/supervisor.py:2648 supervise_task
        airflow/sdk/execution_time/coordinator.py:143 execute_task
        airflow/sdk/execution_time/supervisor.py:1428 start
        airflow/sdk/execution_time/supervisor.py:699 start
        """,
        "Airflow", "import CUDA libraries inside the task", user=False,
    ),
    Recorded(
        "apache-airflow-core", "3.3.2",
        """
        airflow/executors/local_executor.py:170 start
        airflow/executors/local_executor.py:236 _spawn_workers_with_gc_freeze
        airflow/executors/local_executor.py:215 _spawn_worker
        """ + START,
        "Airflow", "import CUDA libraries inside the task", user=False,
    ),
    Recorded(
        "apache-airflow", "2.10.5",
        """
        airflow/task/task_runner/standard_task_runner.py:55 start
        airflow/task/task_runner/standard_task_runner.py:70 _start_by_fork
        """,
        "Airflow", "core.execute_tasks_new_python_interpreter", user=False,
    ),
    Recorded(
        "apache-airflow", "2.10.5",
        """
        airflow/executors/local_executor.py:177 do_work
        airflow/executors/local_executor.py:100 execute_work
        airflow/executors/local_executor.py:117 _execute_work_in_fork
        """,
        "Airflow", "core.execute_tasks_new_python_interpreter", user=False,
    ),
    Recorded(
        "rq", "1.16.2",
        """
        rq/worker.py:1274 execute_job
        rq/worker.py:1172 fork_work_horse
        """,
        "RQ worker", "SpawnWorker", user=False,
    ),
    Recorded(
        "pytest-forked", "1.6.0",
        """
        pytest_forked/__init__.py:51 pytest_runtest_protocol
        pytest_forked/__init__.py:73 forked_run_report
        py/_process/forkedfunc.py:45 __init__
        """,
        "pytest-forked", "drop --forked", user=False,
    ),
    Recorded(
        "gunicorn", "20.1.0",
        """
        gunicorn/arbiter.py:202 run
        gunicorn/arbiter.py:551 manage_workers
        gunicorn/arbiter.py:622 spawn_workers
        gunicorn/arbiter.py:573 spawn_worker
        """,
        "gunicorn", "post_worker_init", user=False,
    ),
    Recorded("gunicorn", "20.1.0", "gunicorn/arbiter.py:410 reexec", "", user=False),
    Recorded(
        "joblib", "1.4.2",
        """
        joblib/parallel.py:2007 __call__
        joblib/externals/loky/backend/popen_loky_posix.py:128 _launch
        joblib/externals/loky/backend/fork_exec.py:38 fork_exec
        """,
        "",
    ),
    Recorded(
        "supervisor", "4.2.5",
        """
        supervisor/process.py:670 transition
        supervisor/process.py:241 spawn
        supervisor/options.py:1514 fork
        """,
        "", user=False,
    ),
)  # fmt: skip
