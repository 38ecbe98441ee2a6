-- what a person answered about one content of one skill; rows are never changed but by a revocation
CREATE TABLE consents (
    id TEXT PRIMARY KEY,
    origin_key TEXT NOT NULL CHECK (origin_key <> ''),
    tree_id TEXT NOT NULL CHECK (length(tree_id) = 64),
    capability_digest TEXT NOT NULL CHECK (length(capability_digest) = 64),
    decision TEXT NOT NULL CHECK (decision IN ('yes', 'no')),
    principal TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    decided_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    revoke_reason TEXT NOT NULL,
    CHECK ((revoked_at IS NULL) = (revoke_reason = ''))
) STRICT;

-- serves the ruling of a skill: its answers, the newest first
CREATE INDEX consents_by_origin ON consents (origin_key, id);

CREATE TABLE switches (
    scope TEXT NOT NULL CHECK (scope IN ('home', 'workspace')),
    workspace_id TEXT NOT NULL,
    selector TEXT NOT NULL CHECK (selector GLOB 'skill:*' OR selector GLOB 'extension:*'),
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    principal TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (scope, workspace_id, selector),
    CHECK ((scope = 'home') = (workspace_id = ''))
) STRICT;

-- the files of each content that an activation holds
CREATE TABLE tree_files (
    tree_id TEXT NOT NULL CHECK (length(tree_id) = 64),
    path TEXT NOT NULL CHECK (path <> ''),
    size INTEGER NOT NULL CHECK (size >= 0),
    blob_id TEXT NOT NULL CHECK (length(blob_id) = 64),
    exec INTEGER NOT NULL CHECK (exec IN (0, 1)),
    media_type TEXT NOT NULL,
    PRIMARY KEY (tree_id, path)
) STRICT;

CREATE TABLE activations (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    origin_key TEXT NOT NULL CHECK (origin_key <> ''),
    qualified_name TEXT NOT NULL,
    tree_id TEXT NOT NULL CHECK (length(tree_id) = 64),
    state TEXT NOT NULL CHECK (state IN ('pending', 'active', 'refused', 'expired', 'ended')),
    end_reason TEXT NOT NULL CHECK (end_reason IN (
        '', 'deactivated', 'session_closed', 'expired', 'not_served', 'content_changed', 'revoked', 'extension_disabled'
    )),
    grants TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER,
    version INTEGER NOT NULL,
    CHECK ((state = 'ended') = (end_reason <> '')),
    CHECK ((state = 'ended') = (ended_at IS NOT NULL))
) STRICT;

-- one live activation of a content in a session, or of a caller without one
CREATE UNIQUE INDEX activations_one_active ON activations (
    session_id,
    CASE WHEN session_id = '' THEN principal ELSE '' END,
    workspace_id,
    origin_key,
    tree_id
) WHERE state = 'active';

-- serves the end of a session, the limit of live activations, and what a listing calls active
CREATE INDEX activations_of_session ON activations (session_id, principal) WHERE state = 'active';

-- serves the sweep of those whose time is over, and which contents are still held
CREATE INDEX activations_by_expiry ON activations (expires_at) WHERE state = 'active';
CREATE INDEX activations_by_tree ON activations (tree_id) WHERE state = 'active';
