-- Versions of directory trees: where they are, what was done to them, and what was proved about them.

CREATE TABLE boundaries (
    workspace_id TEXT PRIMARY KEY,
    root_dev INTEGER NOT NULL,
    root_ino INTEGER NOT NULL,
    fs_type TEXT NOT NULL DEFAULT '',
    fs_facts TEXT NOT NULL DEFAULT '{}',
    policy_id TEXT NOT NULL,
    limits TEXT NOT NULL DEFAULT '{}',
    state TEXT NOT NULL CHECK (state IN ('ready', 'rebound', 'refused', 'gone')),
    version INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE TABLE path_policies (
    id TEXT PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE snapshots (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    place TEXT NOT NULL,
    tree TEXT NOT NULL,
    policy_id TEXT NOT NULL,
    omissions TEXT NOT NULL,
    completeness TEXT NOT NULL CHECK (completeness IN ('complete', 'partial', 'unstable')),
    reason TEXT NOT NULL CHECK (reason IN ('asked', 'before', 'after', 'turn', 'watch', 'merge', 'import', 'write',
        'barrier', 'safety')),
    principal TEXT NOT NULL,
    session_id TEXT NOT NULL DEFAULT '',
    run_id TEXT NOT NULL DEFAULT '',
    operation_id TEXT NOT NULL DEFAULT '',
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    new_bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- Serves "the newest snapshot of a place" and the timeline of a workspace.
CREATE INDEX snapshots_of_place ON snapshots (workspace_id, place, id);

-- Serves "which snapshots hold this tree".
CREATE INDEX snapshots_of_tree ON snapshots (tree);

CREATE TABLE labels (
    workspace_id TEXT NOT NULL,
    name TEXT NOT NULL,
    snapshot_id TEXT NOT NULL,
    pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    version INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (workspace_id, name)
) STRICT;

CREATE TABLE edges (
    child TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    parent TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('edit', 'fork', 'write', 'check', 'restore', 'undo', 'merge', 'resolve',
        'replay', 'import', 'promote')),
    PRIMARY KEY (child, ordinal)
) STRICT;

CREATE TABLE operations (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('snapshot', 'fork', 'write', 'exec', 'restore', 'undo', 'merge', 'resolve',
        'promote', 'import', 'export', 'collect', 'verify', 'purge')),
    workspace_id TEXT NOT NULL,
    place TEXT NOT NULL,
    args_digest TEXT NOT NULL DEFAULT '',
    plan TEXT NOT NULL DEFAULT '',
    before_tree TEXT NOT NULL DEFAULT '',
    after_tree TEXT NOT NULL DEFAULT '',
    inverse_of TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'parked', 'recovering', 'done', 'failed', 'canceled')),
    progress TEXT NOT NULL DEFAULT '{}',
    error TEXT NOT NULL DEFAULT '',
    cas TEXT NOT NULL DEFAULT 'exchange' CHECK (cas IN ('exchange', 'weak')),
    principal TEXT NOT NULL,
    idempotency_key TEXT NOT NULL DEFAULT '',
    fence INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 1,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Serves recovery, which looks at what was not finished.
CREATE INDEX operations_open ON operations (workspace_id, place)
WHERE state IN ('queued', 'running', 'parked', 'recovering');

-- Serves the timeline of a workspace.
CREATE INDEX operations_of_workspace ON operations (workspace_id, id);

CREATE TABLE apply_steps (
    operation_id TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    path BLOB NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('add', 'replace', 'delete', 'mode', 'mkdir', 'rmdir', 'retype')),
    old_type TEXT NOT NULL DEFAULT '' CHECK (old_type IN ('', 'f', 'd', 'l')),
    old_id TEXT NOT NULL DEFAULT '',
    old_mode INTEGER NOT NULL DEFAULT 0,
    old_size INTEGER NOT NULL DEFAULT 0,
    new_type TEXT NOT NULL DEFAULT '' CHECK (new_type IN ('', 'f', 'd', 'l')),
    new_id TEXT NOT NULL DEFAULT '',
    new_mode INTEGER NOT NULL DEFAULT 0,
    new_size INTEGER NOT NULL DEFAULT 0,
    staged INTEGER NOT NULL DEFAULT 0,
    displaced TEXT NOT NULL DEFAULT '',
    phase TEXT NOT NULL CHECK (phase IN ('planned', 'staged', 'swapped', 'verified', 'contested', 'reverted')),
    PRIMARY KEY (operation_id, ordinal)
) STRICT;

CREATE TABLE displaced (
    id TEXT PRIMARY KEY,
    operation_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    path BLOB NOT NULL,
    file TEXT NOT NULL,
    inode TEXT NOT NULL,
    id_at_move TEXT NOT NULL,
    checked_at INTEGER NOT NULL,
    late_id TEXT NOT NULL DEFAULT '',
    expires_at INTEGER NOT NULL
) STRICT;

-- Serves the sweep of what was kept long enough.
CREATE INDEX displaced_expiring ON displaced (expires_at);

CREATE TABLE forks (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    base_snapshot TEXT NOT NULL,
    head_snapshot TEXT NOT NULL,
    dir TEXT NOT NULL,
    strategy TEXT NOT NULL CHECK (strategy IN ('overlay', 'materialised')),
    mode TEXT NOT NULL CHECK (mode IN ('edit', 'run')),
    label TEXT NOT NULL DEFAULT '',
    hypothesis TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL CHECK (state IN ('making', 'open', 'conflicted', 'settled', 'promoting', 'closed', 'failed',
        'gone')),
    seal TEXT NOT NULL DEFAULT 'none' CHECK (seal IN ('none', 'sealed', 'lifted')),
    barrier_id TEXT NOT NULL DEFAULT '',
    holder TEXT NOT NULL,
    session_id TEXT NOT NULL DEFAULT '',
    fence INTEGER NOT NULL DEFAULT 1,
    lease_until INTEGER NOT NULL DEFAULT 0,
    expires_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL DEFAULT 0,
    derived TEXT NOT NULL DEFAULT '[]',
    git TEXT NOT NULL DEFAULT 'none' CHECK (git IN ('none', 'stub')),
    version INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL
) STRICT;

-- Serves the limit of living forks, and their list.
CREATE INDEX forks_of_workspace ON forks (workspace_id, state);

CREATE TABLE checks (
    workspace_id TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    body TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('file', 'tool', 'loop', 'team', 'adhoc')),
    hidden INTEGER NOT NULL DEFAULT 0 CHECK (hidden IN (0, 1)),
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, name, digest)
) STRICT;

CREATE TABLE receipts (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    check_name TEXT NOT NULL DEFAULT '',
    check_digest TEXT NOT NULL,
    tree_in TEXT NOT NULL,
    tree_out TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL CHECK (state IN ('queued', 'preparing', 'running', 'settling', 'recorded', 'refused',
        'canceled', 'lost')),
    status TEXT NOT NULL DEFAULT '' CHECK (status IN ('', 'pass', 'fail', 'error', 'timeout', 'invalid')),
    exit TEXT NOT NULL DEFAULT '',
    tests TEXT NOT NULL DEFAULT '',
    environment_digest TEXT NOT NULL DEFAULT '',
    isolation TEXT NOT NULL DEFAULT '' CHECK (isolation IN ('', 'none', 'process', 'landlock', 'bubblewrap')),
    enforced TEXT NOT NULL DEFAULT '{}',
    controls TEXT NOT NULL DEFAULT '{}',
    body TEXT NOT NULL DEFAULT '',
    stdout TEXT NOT NULL DEFAULT '',
    stderr TEXT NOT NULL DEFAULT '',
    mac TEXT NOT NULL DEFAULT '',
    reused_from TEXT NOT NULL DEFAULT '',
    operation_id TEXT NOT NULL DEFAULT '',
    at INTEGER NOT NULL,
    CHECK ((state = 'recorded') = (status <> ''))
) STRICT;

-- Serves reuse, and the evidence for a tree.
CREATE INDEX receipts_of_tree ON receipts (tree_in, check_digest, environment_digest);

-- Serves the list of a workspace.
CREATE INDEX receipts_of_workspace ON receipts (workspace_id, id);

-- Serves recovery.
CREATE INDEX receipts_open ON receipts (state) WHERE state IN ('queued', 'preparing', 'running', 'settling');

CREATE TABLE promotions (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    operation_id TEXT NOT NULL DEFAULT '',
    source_ref TEXT NOT NULL,
    base_tree TEXT NOT NULL,
    live_tree TEXT NOT NULL,
    result_tree TEXT NOT NULL,
    plan_digest TEXT NOT NULL,
    gate_digest TEXT NOT NULL,
    verdict_id TEXT NOT NULL DEFAULT '',
    verdict TEXT NOT NULL,
    approval_id TEXT NOT NULL DEFAULT '',
    cas TEXT NOT NULL CHECK (cas IN ('exchange', 'weak')),
    state TEXT NOT NULL CHECK (state IN ('planned', 'proving', 'waiting', 'ready', 'refused', 'stale', 'staging',
        'applying', 'confirming', 'rolling_back', 'committed', 'rolled_back', 'reversed')),
    concurrent TEXT NOT NULL DEFAULT '[]',
    version INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL
) STRICT;

-- Serves the list of a workspace, and the one that waits for the same plan.
CREATE INDEX promotions_of_workspace ON promotions (workspace_id, plan_digest);
