CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('recorded', 'driven', 'spawned', 'system')),
    state TEXT NOT NULL CHECK (state IN ('open', 'closed', 'archived')),
    driver TEXT NOT NULL CHECK (driver IN ('none', 'starting', 'idle', 'prompting', 'stopping', 'stopped', 'failed')),
    agent_name TEXT NOT NULL,
    agent_digest TEXT NOT NULL,
    parent_id TEXT NOT NULL,
    root_id TEXT NOT NULL,
    depth INTEGER NOT NULL,
    labels TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    seen_seq INTEGER NOT NULL,
    settled_seq INTEGER NOT NULL,
    ttl_until INTEGER,
    spawn_policy TEXT NOT NULL,
    host_client TEXT NOT NULL,
    external_ref TEXT,
    created_at INTEGER NOT NULL,
    last_active_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    CHECK (state <> 'archived' OR driver IN ('none', 'stopped', 'failed'))
) STRICT;

-- serves the way from a name to the session that has it now
CREATE UNIQUE INDEX sessions_by_name ON sessions (workspace_id, name) WHERE state <> 'archived';

-- serves recording by a host's own id of the conversation
CREATE UNIQUE INDEX sessions_by_external_ref ON sessions (external_ref) WHERE external_ref IS NOT NULL;

-- serves the list of sessions, newest first
CREATE INDEX sessions_by_activity ON sessions (last_active_at, id);

CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    ordinal INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    state TEXT NOT NULL CHECK (
        state IN ('reserved', 'sent', 'completed', 'failed', 'interrupted', 'canceled', 'uncertain')
    ),
    effect_class TEXT NOT NULL CHECK (
        effect_class IN ('pure', 'contained', 'idempotent', 'compensable', 'irreversible')
    ),
    runtime TEXT NOT NULL,
    stop_reason TEXT NOT NULL,
    failure TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    UNIQUE (session_id, ordinal),
    UNIQUE (session_id, message_id),
    UNIQUE (session_id, idempotency_key)
) STRICT;

-- holds a session to one turn at a time
CREATE UNIQUE INDEX turns_sent ON turns (session_id) WHERE state = 'sent';

CREATE TABLE events (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    seq INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (
        kind IN (
            'prompt', 'reply', 'thought', 'tool_call', 'tool_result', 'plan', 'usage', 'marker', 'question', 'answer',
            'note', 'system', 'error'
        )
    ),
    actor TEXT NOT NULL,
    body TEXT,
    blob TEXT,
    size INTEGER NOT NULL,
    digest TEXT NOT NULL,
    archived INTEGER NOT NULL CHECK (archived IN (0, 1)),
    at INTEGER NOT NULL,
    PRIMARY KEY (session_id, seq),
    CHECK ((body IS NULL) <> (blob IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TRIGGER events_keep_their_rows
BEFORE UPDATE ON events
WHEN NEW.session_id IS NOT OLD.session_id
    OR NEW.seq IS NOT OLD.seq
    OR NEW.turn_id IS NOT OLD.turn_id
    OR NEW.kind IS NOT OLD.kind
    OR NEW.actor IS NOT OLD.actor
    OR NEW.body IS NOT OLD.body
    OR NEW.blob IS NOT OLD.blob
    OR NEW.size IS NOT OLD.size
    OR NEW.digest IS NOT OLD.digest
    OR NEW.at IS NOT OLD.at
BEGIN
    SELECT RAISE(ABORT, 'an event never changes; only archived may');
END;

CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    priority TEXT NOT NULL CHECK (priority IN ('low', 'medium', 'high', 'urgent')),
    labels TEXT NOT NULL,
    parent_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    required_caps TEXT NOT NULL,
    preferred_caps TEXT NOT NULL,
    checks TEXT NOT NULL,
    done_when TEXT NOT NULL,
    output_schema TEXT NOT NULL,
    effects TEXT NOT NULL CHECK (effects IN ('contained', 'idempotent', 'external')),
    workspace_mode TEXT NOT NULL CHECK (workspace_mode IN ('none', 'read', 'live', 'fork')),
    max_attempts INTEGER NOT NULL CHECK (max_attempts BETWEEN 1 AND 10),
    max_runtime_s INTEGER,
    status TEXT NOT NULL CHECK (
        status IN (
            'draft', 'pending', 'ready', 'blocked', 'in_progress', 'needs_attention', 'completed', 'failed', 'canceled'
        )
    ),
    draft INTEGER NOT NULL CHECK (draft IN (0, 1)),
    canceled INTEGER NOT NULL CHECK (canceled IN (0, 1)),
    paused INTEGER NOT NULL CHECK (paused IN (0, 1)),
    approval TEXT NOT NULL CHECK (approval IN ('none', 'pending', 'approved', 'rejected')),
    auto_enqueue INTEGER NOT NULL CHECK (auto_enqueue IN (0, 1)),
    review_policy TEXT NOT NULL CHECK (review_policy IN ('none', 'on_success', 'on_failure', 'always')),
    review_rounds INTEGER NOT NULL,
    attention_code TEXT NOT NULL,
    spec_path TEXT NOT NULL,
    spec_digest TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL
) STRICT;

-- serves the list of tasks of a workspace by status
CREATE INDEX tasks_by_status ON tasks (workspace_id, status, id);

-- serves a parent's status from its children
CREATE INDEX tasks_by_parent ON tasks (parent_id) WHERE parent_id <> '';

CREATE TABLE task_links (
    blocker_id TEXT NOT NULL REFERENCES tasks (id),
    blocked_id TEXT NOT NULL REFERENCES tasks (id),
    PRIMARY KEY (blocker_id, blocked_id),
    CHECK (blocker_id <> blocked_id)
) STRICT, WITHOUT ROWID;

-- serves the blockers of a task
CREATE INDEX task_links_by_blocked ON task_links (blocked_id);

CREATE TABLE task_blocks (
    id TEXT PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES tasks (id),
    kind TEXT NOT NULL CHECK (kind IN ('needs_input', 'capability', 'transient')),
    reason TEXT NOT NULL,
    expires_at INTEGER,
    cleared_at INTEGER
) STRICT;

-- serves the open blocks of a task
CREATE INDEX task_blocks_open ON task_blocks (task_id) WHERE cleared_at IS NULL;

CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    owner_kind TEXT NOT NULL CHECK (owner_kind IN ('task', 'cell', 'check', 'wake', 'team')),
    owner_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    previous_id TEXT NOT NULL,
    pool TEXT NOT NULL CHECK (pool IN ('host', 'push', 'engine')),
    state TEXT NOT NULL CHECK (
        state IN ('queued', 'leased', 'proving', 'stopping', 'attention', 'completed', 'failed', 'canceled', 'lost')
    ),
    required_caps TEXT NOT NULL,
    priority INTEGER NOT NULL CHECK (priority IN (10, 20, 30, 40)),
    queued_at INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    worker TEXT NOT NULL,
    fence INTEGER NOT NULL,
    lease_hash TEXT,
    lease_until INTEGER,
    lease_s INTEGER NOT NULL,
    renewed_at INTEGER,
    phase_note TEXT NOT NULL,
    packet_blob TEXT NOT NULL,
    result_blob TEXT NOT NULL,
    result TEXT NOT NULL,
    summary TEXT NOT NULL,
    failure_class TEXT NOT NULL,
    failure_signature TEXT NOT NULL,
    proof TEXT NOT NULL,
    late INTEGER NOT NULL CHECK (late IN (0, 1)),
    budget_id TEXT NOT NULL,
    starve_cycles INTEGER NOT NULL,
    traceparent TEXT NOT NULL,
    ended_at INTEGER,
    version INTEGER NOT NULL,
    CHECK ((lease_until IS NULL) = (lease_hash IS NULL)),
    CHECK ((state = 'leased') = (lease_hash IS NOT NULL))
) STRICT;

-- holds an owner to one open run
CREATE UNIQUE INDEX runs_open ON runs (owner_kind, owner_id)
WHERE state IN ('queued', 'leased', 'proving', 'stopping', 'attention');

-- serves the next run to claim
CREATE INDEX runs_queue ON runs (pool, state, priority, queued_at, id) WHERE state = 'queued';

-- serves the sweep of leases that ran out, and the one lease of a session
CREATE INDEX runs_leased ON runs (session_id, lease_until) WHERE state = 'leased';

-- serves the attempts of an owner
CREATE INDEX runs_by_owner ON runs (owner_kind, owner_id, attempt);

CREATE TABLE run_effects (
    subject_ref TEXT NOT NULL,
    key TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (id),
    class TEXT NOT NULL CHECK (class IN ('pure', 'contained', 'idempotent', 'compensable', 'irreversible')),
    state TEXT NOT NULL CHECK (state IN ('intent', 'done', 'undone', 'unknown')),
    request_hash TEXT NOT NULL,
    note TEXT NOT NULL,
    outcome TEXT NOT NULL,
    PRIMARY KEY (subject_ref, key)
) STRICT, WITHOUT ROWID;
