-- Processes that the runner started: recorded before they can run, so that a restart ends what was left over.
CREATE TABLE processes (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'running', 'stopping', 'exited', 'start_failed', 'lost')),
    reason TEXT NOT NULL DEFAULT '' CHECK (reason IN ('', 'exit', 'signal', 'wall_limit', 'cpu_limit', 'memory_limit',
        'output_limit', 'disk_limit', 'stopped', 'halted', 'parent_lost')),
    argv_digest TEXT NOT NULL,
    pid INTEGER NOT NULL DEFAULT 0,
    start_ticks INTEGER NOT NULL DEFAULT 0,
    boot_id TEXT NOT NULL DEFAULT '',
    supervisor_pid INTEGER NOT NULL,
    supervisor_ticks INTEGER NOT NULL,
    supervisor_boot TEXT NOT NULL,
    isolation TEXT NOT NULL CHECK (isolation IN ('none', 'process', 'landlock', 'bubblewrap')),
    enforced TEXT NOT NULL,
    limits TEXT NOT NULL,
    exit TEXT NOT NULL DEFAULT '',
    out_blob TEXT NOT NULL DEFAULT '',
    err_blob TEXT NOT NULL DEFAULT '',
    budget_id TEXT NOT NULL DEFAULT '',
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Serves the start-up sweep, which looks at open processes only.
CREATE INDEX processes_open ON processes (state) WHERE state IN ('reserved', 'running', 'stopping');

-- Serves "the processes of this receipt or run".
CREATE INDEX processes_of_owner ON processes (owner);
