CREATE TABLE net_channel (
    workspace TEXT NOT NULL,
    channel TEXT NOT NULL,
    purpose TEXT NOT NULL CHECK (length(purpose) <= 500),
    identity TEXT NOT NULL CHECK (identity IN ('plain', 'signed')),
    trust_policy TEXT NOT NULL CHECK (trust_policy IN ('any', 'flag', 'verified_only')),
    state TEXT NOT NULL CHECK (state IN ('open', 'archived')),
    strategy TEXT NOT NULL CHECK (strategy IN ('named', 'run', 'loop_run')),
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    PRIMARY KEY (workspace, channel)
) STRICT;

CREATE TABLE net_peer (
    workspace TEXT NOT NULL,
    channel TEXT NOT NULL,
    peer_id TEXT NOT NULL,
    stable_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('session', 'human', 'runtime', 'foreign')),
    session_id TEXT NOT NULL,
    owner_kind TEXT NOT NULL CHECK (owner_kind IN ('', 'session', 'run', 'loop_run', 'automation_run')),
    owner_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    peering TEXT NOT NULL,
    card TEXT NOT NULL,
    key_id TEXT NOT NULL,
    presence TEXT NOT NULL CHECK (presence IN ('joined', 'left', 'fresh', 'stale')),
    last_seen INTEGER NOT NULL,
    joined_at INTEGER NOT NULL,
    left_at INTEGER,
    PRIMARY KEY (workspace, channel, peer_id),
    CHECK ((presence = 'left') = (left_at IS NOT NULL))
) STRICT;

-- one present peer for one identity, and the peer of a session that joins again
CREATE UNIQUE INDEX net_peer_by_stable_id ON net_peer (workspace, channel, stable_id) WHERE left_at IS NULL;

-- serves "which peers is this caller", on every call
CREATE INDEX net_peer_by_principal ON net_peer (principal, workspace) WHERE left_at IS NULL;

-- serves the same for a caller whose session is proven
CREATE INDEX net_peer_by_session ON net_peer (session_id, workspace) WHERE left_at IS NULL;

CREATE TABLE net_participation (
    owner_kind TEXT NOT NULL CHECK (owner_kind IN ('session', 'run', 'loop_run', 'automation_run')),
    owner_id TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('local', 'live')),
    snapshot TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN (
        'explicit_request', 'task_profile', 'loop_definition', 'automation_job', 'workspace_coordination',
        'built_in_local'
    )),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (owner_kind, owner_id)
) STRICT;

CREATE TRIGGER net_participation_never_changes
BEFORE UPDATE ON net_participation
BEGIN
    SELECT RAISE(ABORT, 'participation is resolved once');
END;

CREATE TRIGGER net_participation_stays
BEFORE DELETE ON net_participation
BEGIN
    SELECT RAISE(ABORT, 'participation is resolved once');
END;

-- AUTOINCREMENT: a sequence is never given twice, not even after rows were purged
CREATE TABLE net_message (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    from_peer TEXT NOT NULL,
    message_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('greet', 'whois', 'say', 'capability', 'receipt', 'trace')),
    channel TEXT NOT NULL,
    surface TEXT CHECK (surface IN ('thread', 'direct')),
    container_id TEXT,
    to_peer TEXT,
    work_id TEXT,
    reply_to TEXT,
    trace_id TEXT,
    causation_id TEXT,
    ts INTEGER NOT NULL CHECK (ts > 0),
    expires_at INTEGER,
    canon_sha256 TEXT NOT NULL CHECK (length(canon_sha256) = 64),
    raw BLOB,
    raw_blob TEXT,
    trust TEXT NOT NULL CHECK (trust IN ('unverified', 'verified')),
    flags TEXT NOT NULL,
    origin TEXT NOT NULL CHECK (origin IN ('local', 'carrier')),
    peering TEXT NOT NULL,
    root_seq INTEGER NOT NULL,
    depth INTEGER NOT NULL CHECK (depth >= 0),
    accepted_at INTEGER NOT NULL,
    UNIQUE (workspace, from_peer, message_id),
    CHECK ((surface IS NULL) = (kind IN ('greet', 'whois'))),
    CHECK ((surface IS NULL) = (container_id IS NULL)),
    CHECK (raw IS NULL OR raw_blob IS NULL)
) STRICT;

-- serves the messages of a thread, a room or a channel in order
CREATE INDEX net_message_by_container ON net_message (workspace, channel, surface, container_id, seq);

-- serves a reference to a message, and causation
CREATE INDEX net_message_by_id ON net_message (workspace, message_id);

-- serves the messages of a work
CREATE INDEX net_message_by_work ON net_message (workspace, work_id, seq) WHERE work_id IS NOT NULL;

CREATE TABLE net_thread (
    workspace TEXT NOT NULL,
    channel TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    title TEXT NOT NULL CHECK (length(title) <= 120),
    root_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL CHECK (last_seq >= root_seq),
    messages INTEGER NOT NULL CHECK (messages >= 1),
    view TEXT NOT NULL CHECK (view IN ('open', 'archived')),
    PRIMARY KEY (workspace, channel, thread_id)
) STRICT;

CREATE TABLE net_thread_peer (
    workspace TEXT NOT NULL,
    channel TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    peer_id TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    PRIMARY KEY (workspace, channel, thread_id, peer_id)
) STRICT;

CREATE TABLE net_room (
    workspace TEXT NOT NULL,
    channel TEXT NOT NULL,
    direct_id TEXT NOT NULL,
    peer_a TEXT NOT NULL,
    peer_b TEXT NOT NULL,
    stable_a TEXT NOT NULL,
    stable_b TEXT NOT NULL,
    PRIMARY KEY (workspace, channel, direct_id),
    UNIQUE (workspace, channel, stable_a, stable_b),
    CHECK (stable_a < stable_b)
) STRICT;

CREATE TABLE net_delivery (
    seq INTEGER NOT NULL REFERENCES net_message (seq),
    peer_id TEXT NOT NULL,
    decision TEXT NOT NULL CHECK (decision IN ('deliver', 'ignore')),
    reason TEXT NOT NULL CHECK (reason IN (
        'addressed', 'mentioned', 'participant', 'member', 'muted', 'not_addressed', 'held'
    )),
    read_at INTEGER,
    acked_at INTEGER,
    PRIMARY KEY (seq, peer_id),
    CHECK (acked_at IS NULL OR read_at IS NOT NULL)
) STRICT;

-- serves an inbox in the order of acceptance
CREATE INDEX net_delivery_by_peer ON net_delivery (peer_id, seq) WHERE decision = 'deliver';

-- serves what is left to acknowledge, and unread counts
CREATE INDEX net_delivery_unacked ON net_delivery (peer_id, seq) WHERE decision = 'deliver' AND acked_at IS NULL;

CREATE TABLE net_cursor (
    workspace TEXT NOT NULL,
    stable_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    peek_seq INTEGER NOT NULL CHECK (peek_seq >= read_seq),
    read_seq INTEGER NOT NULL CHECK (read_seq >= ack_seq),
    ack_seq INTEGER NOT NULL CHECK (ack_seq >= 0),
    PRIMARY KEY (workspace, stable_id, channel)
) STRICT;

CREATE TRIGGER net_cursor_only_rises
BEFORE UPDATE ON net_cursor
WHEN NEW.peek_seq < OLD.peek_seq OR NEW.read_seq < OLD.read_seq OR NEW.ack_seq < OLD.ack_seq
BEGIN
    SELECT RAISE(ABORT, 'a cursor only rises');
END;

CREATE TABLE net_work (
    workspace TEXT NOT NULL,
    work_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    surface TEXT NOT NULL CHECK (surface IN ('thread', 'direct')),
    container_id TEXT NOT NULL,
    initiator TEXT NOT NULL,
    target TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN (
        'submitted', 'working', 'needs_input', 'completed', 'failed', 'canceled'
    )),
    opened_seq INTEGER NOT NULL,
    closed_seq INTEGER,
    version INTEGER NOT NULL CHECK (version >= 1),
    PRIMARY KEY (workspace, work_id),
    CHECK ((state IN ('completed', 'failed', 'canceled')) = (closed_seq IS NOT NULL))
) STRICT;

-- serves the work of a container
CREATE INDEX net_work_by_container ON net_work (workspace, channel, container_id, opened_seq);

-- serves the open work of a peer
CREATE INDEX net_work_open ON net_work (workspace, channel, opened_seq) WHERE closed_seq IS NULL;

CREATE TABLE net_work_step (
    seq INTEGER PRIMARY KEY REFERENCES net_message (seq),
    workspace TEXT NOT NULL,
    work_id TEXT NOT NULL,
    event TEXT NOT NULL,
    from_state TEXT NOT NULL CHECK (from_state IN (
        '', 'submitted', 'working', 'needs_input', 'completed', 'failed', 'canceled'
    )),
    to_state TEXT NOT NULL CHECK (to_state IN (
        'submitted', 'working', 'needs_input', 'completed', 'failed', 'canceled'
    )),
    actor TEXT NOT NULL
) STRICT;

-- serves the steps of one work
CREATE INDEX net_work_step_by_work ON net_work_step (workspace, work_id, seq);

CREATE TABLE net_reject (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    origin TEXT NOT NULL CHECK (origin IN ('local', 'carrier')),
    peering TEXT NOT NULL,
    sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
    bytes INTEGER NOT NULL CHECK (bytes >= 0),
    from_claim TEXT NOT NULL,
    id_claim TEXT NOT NULL,
    reason_code TEXT NOT NULL CHECK (reason_code IN (
        'malformed', 'expired', 'duplicate', 'unsupported_kind', 'unsupported_profile', 'verification_failed',
        'not_target', 'not_found', 'busy', 'internal', 'work_closed', 'work_container_mismatch', 'invalid_surface',
        'conversation_not_found', 'legacy_field_rejected'
    )),
    local_code TEXT NOT NULL CHECK (local_code IN (
        '', 'envelope_too_large', 'not_json', 'duplicate_key', 'integer_range', 'too_deep', 'not_object',
        'missing_field', 'bad_type', 'bad_identifier', 'bad_timestamp', 'bad_body', 'digest_mismatch',
        'secret_material', 'proof_invalid', 'proof_stripped', 'policy_denied', 'reserved_peer', 'peering_denied',
        'id_conflict', 'direct_room_collision', 'work_not_found', 'work_actor_not_allowed', 'invalid_transition'
    )),
    pointer TEXT NOT NULL
) STRICT;

-- serves pruning, and the cap on how many are kept a minute
CREATE INDEX net_reject_by_time ON net_reject (at);
