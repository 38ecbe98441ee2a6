CREATE TABLE workspaces (
    id TEXT PRIMARY KEY,
    root TEXT NOT NULL,
    name TEXT NOT NULL,
    extra_roots TEXT NOT NULL,
    repository TEXT NOT NULL,
    default_agent TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('present', 'moved', 'gone')),
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- serves the way from a folder to its workspace; a moved one keeps its last root for people to read
CREATE UNIQUE INDEX workspaces_by_root ON workspaces (root) WHERE state = 'present';

-- serves the way from a name to its workspace
CREATE UNIQUE INDEX workspaces_by_name ON workspaces (name) WHERE state <> 'gone';

-- serves grants that hold in every worktree of a repository
CREATE INDEX workspaces_by_repository ON workspaces (repository) WHERE repository <> '';

CREATE TABLE tokens (
    token_hash TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('home', 'operator', 'process')),
    principal TEXT NOT NULL,
    run_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    CHECK (kind = 'home' OR expires_at IS NOT NULL),
    CHECK ((kind = 'process') = (run_id <> ''))
) STRICT;

-- serves ending the tokens of a run, and the one home token that holds
CREATE INDEX tokens_in_force ON tokens (kind, run_id) WHERE revoked_at IS NULL;
