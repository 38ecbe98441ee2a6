CREATE TABLE policy_revisions (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    engine TEXT NOT NULL,
    files TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE policy_trust (
    workspace_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('policy', 'agent', 'hook', 'job', 'trigger', 'loop', 'check', 'gate', 'skills', 'host')),
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('', 'content', 'all', 'forms')),
    root_device_inode TEXT NOT NULL,
    principal TEXT NOT NULL,
    trusted_at INTEGER NOT NULL,
    revoked_at INTEGER,
    PRIMARY KEY (workspace_id, kind, path, sha256),
    CHECK (kind <> 'host' OR (workspace_id = '' AND sha256 = ''))
) STRICT;

CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('pending', 'allowed', 'denied', 'expired', 'canceled', 'superseded')),
    exec_state TEXT NOT NULL CHECK (exec_state IN ('none', 'dispatching', 'completed', 'failed', 'uncertain')),
    kind TEXT NOT NULL CHECK (kind IN ('call', 'batch', 'definition', 'trust', 'subject')),
    subject_kind TEXT NOT NULL CHECK (subject_kind IN ('', 'promotion', 'gate', 'consent', 'erase', 'override')),
    subject_hash TEXT NOT NULL,
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    action_hash TEXT NOT NULL,
    input_digest TEXT NOT NULL,
    accesses TEXT NOT NULL,
    summary TEXT NOT NULL,
    principal TEXT NOT NULL,
    session_id TEXT NOT NULL,
    root_session_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    policy_revision TEXT NOT NULL,
    options TEXT NOT NULL,
    asks INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    answer TEXT NOT NULL CHECK (answer IN ('', 'allow_once', 'allow_session', 'allow_workspace', 'allow_until', 'allow_uses', 'deny_once', 'deny_always')),
    answered_by TEXT NOT NULL,
    proof TEXT NOT NULL CHECK (proof IN ('', 'elicited', 'terminal', 'code', 'host_trusted', 'operator', 'page')),
    note TEXT NOT NULL,
    answered_at INTEGER,
    version INTEGER NOT NULL,
    CHECK ((kind = 'subject') = (subject_kind <> '')),
    CHECK ((state IN ('allowed', 'denied')) = (answer <> '')),
    CHECK ((answer <> '') = (proof <> ''))
) STRICT;

-- one open question a call: of a session's lineage, or of a caller without a session
CREATE UNIQUE INDEX approvals_one_pending ON approvals (
    root_session_id,
    CASE WHEN root_session_id = '' THEN principal ELSE '' END,
    action_hash,
    input_digest
) WHERE state = 'pending' AND kind <> 'subject';

-- one open question a subject
CREATE UNIQUE INDEX approvals_one_pending_subject ON approvals (subject_kind, subject_hash)
WHERE state = 'pending' AND kind = 'subject';

-- serves the answer that a retried call or subject looks for
CREATE INDEX approvals_by_call ON approvals (action_hash, input_digest, created_at);
CREATE INDEX approvals_by_subject ON approvals (subject_kind, subject_hash, created_at) WHERE kind = 'subject';

-- serves lists and counts of open questions, and the sweep of overdue ones
CREATE INDEX approvals_open ON approvals (workspace_id, session_id, expires_at) WHERE state = 'pending';

-- serves the start-up repair: what was let go and never ended
CREATE INDEX approvals_dispatching ON approvals (id) WHERE exec_state = 'dispatching';

CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    effect TEXT NOT NULL CHECK (effect IN ('allow', 'deny')),
    scope TEXT NOT NULL CHECK (scope IN ('once', 'session', 'workspace', 'until', 'activation')),
    match_kind TEXT NOT NULL CHECK (match_kind IN ('input', 'exact', 'pattern')),
    pattern TEXT NOT NULL,
    session_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    activation_id TEXT NOT NULL,
    actor TEXT NOT NULL,
    taint TEXT NOT NULL,
    uses_left INTEGER CHECK (uses_left >= 0),
    expires_at INTEGER NOT NULL,
    approval_id TEXT NOT NULL,
    parent_grant_id TEXT NOT NULL,
    created_by TEXT NOT NULL,
    policy_revision TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER,
    revoked_by TEXT NOT NULL,
    CHECK (scope <> 'session' OR session_id <> ''),
    CHECK (scope <> 'workspace' OR workspace_id <> ''),
    CHECK (scope <> 'activation' OR activation_id <> '')
) STRICT;

-- serves the grants that may answer a call
CREATE INDEX grants_by_match ON grants (pattern) WHERE revoked_at IS NULL;

-- serves the end of a session or an activation
CREATE INDEX grants_of_session ON grants (session_id) WHERE revoked_at IS NULL AND session_id <> '';
CREATE INDEX grants_of_activation ON grants (activation_id) WHERE revoked_at IS NULL AND activation_id <> '';

CREATE TABLE policy_decisions (
    id TEXT PRIMARY KEY,
    journal_seq INTEGER NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('allow', 'ask', 'deny')),
    tool TEXT NOT NULL,
    action_hash TEXT NOT NULL,
    reasons TEXT NOT NULL,
    session_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    revision TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('run', 'granted', 'person', 'subject', 'pending', 'denied', 'headless')),
    created_at INTEGER NOT NULL
) STRICT;

-- serves the removal of rows older than 90 days
CREATE INDEX policy_decisions_by_time ON policy_decisions (created_at);

-- serves the decisions about an approval
CREATE INDEX policy_decisions_by_approval ON policy_decisions (approval_id) WHERE approval_id <> '';
