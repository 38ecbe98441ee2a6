-- The log (memory_events, memory_editions, memory_texts) is the truth. `memories` is its projection; recall_* are derived.

CREATE TABLE memory_texts (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE memories (
    id TEXT PRIMARY KEY,
    scope TEXT NOT NULL,
    workspace_id TEXT NOT NULL DEFAULT '',
    type TEXT NOT NULL CHECK (type IN (
        'preference', 'instruction', 'fact', 'choice', 'procedure', 'incident', 'person', 'reference', 'episode'
    )),
    key TEXT CHECK (length(key) BETWEEN 1 AND 64),
    slug TEXT NOT NULL,
    title TEXT NOT NULL CHECK (length(title) <= 120),
    head_edition TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN (
        'live', 'superseded', 'retracted', 'archived', 'expired', 'merged', 'erased'
    )),
    pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    author TEXT NOT NULL,
    trust INTEGER NOT NULL CHECK (trust BETWEEN 0 AND 4),
    stale TEXT NOT NULL DEFAULT 'no' CHECK (stale IN ('no', 'changed', 'missing', 'unknown')),
    suspect TEXT NOT NULL DEFAULT '',
    channel TEXT NOT NULL CHECK (channel IN (
        'tool', 'cli', 'folder', 'import', 'extension', 'consolidation', 'fork', 'network'
    )),
    fork_id TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1)
) STRICT;

-- One live memory a slot; serves the controller's rule `key`, and shadowing.
CREATE UNIQUE INDEX memories_slot ON memories (scope, type, key)
    WHERE state = 'live' AND key IS NOT NULL AND fork_id = '';
-- Serves shadowing in the past, where slots were held by what lives no more.
CREATE INDEX memories_keyed ON memories (type, key) WHERE key IS NOT NULL;
-- Serves the choice of a free slug.
CREATE UNIQUE INDEX memories_slug ON memories (scope, type, slug, fork_id);
-- Serves listings of a scope, newest first.
CREATE INDEX memories_of_scope ON memories (scope, state, id);
-- Serves the episodes of a workspace's past sessions.
CREATE INDEX memories_of_workspace ON memories (workspace_id, type, id);

CREATE TABLE memory_editions (
    id TEXT PRIMARY KEY,
    memory_id TEXT NOT NULL,
    ordinal INTEGER NOT NULL CHECK (ordinal >= 1),
    text_id TEXT NOT NULL REFERENCES memory_texts (id),
    scope TEXT NOT NULL,
    workspace_id TEXT NOT NULL DEFAULT '',
    type TEXT NOT NULL CHECK (type IN (
        'preference', 'instruction', 'fact', 'choice', 'procedure', 'incident', 'person', 'reference', 'episode'
    )),
    key TEXT,
    slug TEXT NOT NULL,
    attributes TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(attributes)),
    tags TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tags)),
    valid_from INTEGER NOT NULL,
    valid_to INTEGER CHECK (valid_to >= valid_from),
    recorded_at INTEGER NOT NULL,
    unrecorded_at INTEGER CHECK (unrecorded_at >= recorded_at),
    trust INTEGER NOT NULL CHECK (trust BETWEEN 0 AND 4),
    taint TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(taint)),
    author TEXT NOT NULL,
    principal TEXT NOT NULL,
    source_kind TEXT NOT NULL CHECK (source_kind IN (
        'tool', 'cli', 'folder', 'import', 'extension', 'consolidation', 'fork', 'network'
    )),
    source_ref TEXT NOT NULL DEFAULT '',
    thread TEXT NOT NULL DEFAULT '',
    place INTEGER,
    fork_id TEXT NOT NULL DEFAULT '',
    decision_id TEXT NOT NULL,
    text_hash TEXT NOT NULL,
    UNIQUE (memory_id, ordinal, fork_id)
) STRICT;

-- Serves the controller's rule `exact`.
CREATE INDEX memory_editions_text ON memory_editions (scope, type, text_hash) WHERE unrecorded_at IS NULL;
-- Serves the neighbours of a turn.
CREATE INDEX memory_editions_thread ON memory_editions (scope, thread, place)
    WHERE thread <> '' AND unrecorded_at IS NULL;

-- What was believed stays what it was: an edition ends once, and only an erasure empties it.
CREATE TRIGGER memory_editions_fixed BEFORE UPDATE ON memory_editions
WHEN OLD.id <> NEW.id OR OLD.memory_id <> NEW.memory_id OR OLD.ordinal <> NEW.ordinal OR OLD.text_id <> NEW.text_id
    OR OLD.scope <> NEW.scope OR OLD.workspace_id <> NEW.workspace_id OR OLD.type <> NEW.type
    OR OLD.key IS NOT NEW.key OR OLD.slug <> NEW.slug OR OLD.valid_from <> NEW.valid_from
    OR OLD.valid_to IS NOT NEW.valid_to OR OLD.recorded_at <> NEW.recorded_at OR OLD.trust <> NEW.trust
    OR OLD.taint <> NEW.taint OR OLD.author <> NEW.author OR OLD.principal <> NEW.principal
    OR OLD.source_kind <> NEW.source_kind OR OLD.source_ref <> NEW.source_ref OR OLD.thread <> NEW.thread
    OR OLD.place IS NOT NEW.place OR OLD.fork_id <> NEW.fork_id OR OLD.decision_id <> NEW.decision_id
    OR (OLD.unrecorded_at IS NOT NULL AND OLD.unrecorded_at IS NOT NEW.unrecorded_at)
    OR (OLD.attributes <> NEW.attributes AND NEW.attributes <> '{}')
    OR (OLD.tags <> NEW.tags AND NEW.tags <> '[]')
    OR (OLD.text_hash <> NEW.text_hash AND NEW.text_hash <> '')
BEGIN
    SELECT RAISE(ABORT, 'an edition is fixed but for its end');
END;

CREATE TABLE memory_events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id TEXT NOT NULL,
    edition_id TEXT NOT NULL DEFAULT '',
    op TEXT NOT NULL CHECK (op IN (
        'add', 'revise', 'confirm', 'supersede', 'retract', 'archive', 'restore', 'expire', 'move', 'merge', 'link',
        'unlink', 'pin', 'stale', 'fresh', 'suspect', 'clear', 'erase', 'promote', 'drop'
    )),
    detail TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(detail)),
    decision_id TEXT NOT NULL DEFAULT '',
    at INTEGER NOT NULL
) STRICT;

-- Serves the history of a memory, and its state at an instant.
CREATE INDEX memory_events_memory ON memory_events (memory_id, seq);

CREATE TRIGGER memory_events_keep BEFORE UPDATE ON memory_events
BEGIN
    SELECT RAISE(ABORT, 'the log of memory is append-only');
END;

CREATE TRIGGER memory_events_stay BEFORE DELETE ON memory_events
BEGIN
    SELECT RAISE(ABORT, 'the log of memory is append-only');
END;

CREATE TABLE proposals (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN (
        'accepted', 'pending', 'held', 'refused', 'rejected', 'withdrawn', 'replaced', 'expired'
    )),
    operations TEXT NOT NULL CHECK (json_valid(operations)),
    text_ids TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(text_ids)),
    channel TEXT NOT NULL CHECK (channel IN (
        'tool', 'cli', 'folder', 'import', 'extension', 'consolidation', 'fork', 'network'
    )),
    principal TEXT NOT NULL,
    workspace_id TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '' CHECK (length(reason) <= 500),
    batch_id TEXT NOT NULL DEFAULT '',
    fork_id TEXT NOT NULL DEFAULT '',
    scan_id TEXT NOT NULL DEFAULT '',
    dedupe TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 1 CHECK (version >= 1)
) STRICT;

-- Serves the review queue, its count, and the sweep of what has expired.
CREATE INDEX proposals_open ON proposals (workspace_id, state, id);
-- Serves the replacing of an open proposal by a newer one of its author.
CREATE INDEX proposals_dedupe ON proposals (dedupe, principal) WHERE state IN ('pending', 'held');

CREATE TABLE decisions (
    id TEXT PRIMARY KEY,
    proposal_id TEXT NOT NULL,
    ordinal INTEGER NOT NULL CHECK (ordinal BETWEEN 1 AND 50),
    op TEXT NOT NULL CHECK (op IN (
        'none', 'add', 'revise', 'supersede', 'retract', 'archive', 'restore', 'merge', 'move', 'link', 'pin', 'erase',
        'refuse'
    )),
    verdict TEXT NOT NULL CHECK (verdict IN ('accepted', 'duplicate', 'pending', 'held', 'refused')),
    judged_by TEXT NOT NULL CHECK (judged_by IN ('rule', 'person', 'policy')),
    rules TEXT NOT NULL CHECK (json_valid(rules)),
    memory_id TEXT NOT NULL DEFAULT '',
    before_edition TEXT NOT NULL DEFAULT '',
    after_edition TEXT NOT NULL DEFAULT '',
    principal TEXT NOT NULL,
    workspace_id TEXT NOT NULL DEFAULT '',
    trust INTEGER NOT NULL CHECK (trust BETWEEN 0 AND 4),
    reason TEXT NOT NULL DEFAULT '' CHECK (length(reason) <= 500),
    idempotency_key TEXT NOT NULL DEFAULT '',
    at INTEGER NOT NULL,
    reverted_by TEXT NOT NULL DEFAULT ''
) STRICT;

-- Serves the decisions of a proposal.
CREATE INDEX decisions_of_proposal ON decisions (proposal_id, ordinal);
-- Serves the decisions of a memory, and the test for later ones before a revert.
CREATE INDEX decisions_of_memory ON decisions (memory_id, id);
-- Serves the budgets of accepted writes.
CREATE INDEX decisions_recent ON decisions (workspace_id, principal, at) WHERE verdict = 'accepted';

CREATE TABLE evidence (
    id TEXT PRIMARY KEY,
    edition_id TEXT NOT NULL,
    ref TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('file', 'receipt', 'url', 'turn', 'commit', 'memory')),
    workspace_id TEXT NOT NULL DEFAULT '',
    path TEXT NOT NULL DEFAULT '',
    first_line INTEGER,
    last_line INTEGER,
    span_sha256 TEXT NOT NULL DEFAULT '',
    file_sha256 TEXT NOT NULL DEFAULT '',
    snapshot_id TEXT NOT NULL DEFAULT '',
    observed_at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('holds', 'changed', 'missing', 'unchecked')),
    UNIQUE (edition_id, ref)
) STRICT;

-- Serves the finding of what rests on a reference.
CREATE INDEX evidence_of_ref ON evidence (ref);

CREATE TABLE links (
    from_id TEXT NOT NULL,
    to_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('supersedes', 'contradicts', 'extends', 'derives', 'relates', 'merged_into')),
    state TEXT NOT NULL CHECK (state IN ('open', 'settled')),
    rule TEXT NOT NULL DEFAULT '',
    at INTEGER NOT NULL,
    PRIMARY KEY (from_id, to_id, kind)
) STRICT;

-- Serves the links that end at a memory.
CREATE INDEX links_to ON links (to_id, kind);

CREATE TABLE recalls (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    workspace_id TEXT NOT NULL DEFAULT '',
    session_id TEXT NOT NULL DEFAULT '',
    query_hash TEXT NOT NULL,
    query TEXT NOT NULL,
    filters TEXT NOT NULL CHECK (json_valid(filters)),
    mode TEXT NOT NULL CHECK (mode IN ('lexical', 'hybrid', 'relaxed', 'as_of')),
    complete INTEGER NOT NULL CHECK (complete IN (0, 1)),
    weak INTEGER NOT NULL CHECK (weak IN (0, 1)),
    latency_us INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

-- Serve the loop guard: what was shown to a session, or in a workspace, of late.
CREATE INDEX recalls_of_session ON recalls (session_id, at) WHERE session_id <> '';
CREATE INDEX recalls_of_workspace ON recalls (workspace_id, at);

CREATE TABLE recall_items (
    recall_id TEXT NOT NULL,
    rank INTEGER NOT NULL CHECK (rank >= 1),
    memory_id TEXT NOT NULL,
    edition_id TEXT NOT NULL,
    score REAL NOT NULL,
    signals TEXT NOT NULL CHECK (json_valid(signals)),
    used INTEGER NOT NULL DEFAULT 0 CHECK (used IN (0, 1)),
    outcome TEXT NOT NULL DEFAULT 'none' CHECK (outcome IN ('none', 'helped', 'misled')),
    PRIMARY KEY (recall_id, rank)
) STRICT;

-- Serves the counts of use in ranking.
CREATE INDEX recall_items_memory ON recall_items (memory_id, outcome, used);

CREATE TABLE memory_packs (
    session_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    recall_id TEXT NOT NULL,
    blob TEXT NOT NULL,
    items TEXT NOT NULL CHECK (json_valid(items)),
    left_out INTEGER NOT NULL CHECK (left_out >= 0),
    built_seq INTEGER NOT NULL,
    built_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, kind)
) STRICT;

CREATE TABLE recall_docs (
    doc INTEGER PRIMARY KEY,
    edition_id TEXT NOT NULL,
    chunk INTEGER NOT NULL CHECK (chunk >= 0),
    scope_token TEXT NOT NULL,
    author TEXT NOT NULL,
    body TEXT NOT NULL,
    prev TEXT NOT NULL DEFAULT '',
    next TEXT NOT NULL DEFAULT '',
    far TEXT NOT NULL DEFAULT '',
    ask TEXT NOT NULL DEFAULT '',
    names TEXT NOT NULL DEFAULT '',
    UNIQUE (edition_id, chunk)
) STRICT;

CREATE VIRTUAL TABLE recall_index USING fts5(
    scope_token, author, body, prev, next, far, ask,
    content = 'recall_docs', content_rowid = 'doc', tokenize = 'porter unicode61', detail = 'column'
);

-- How many documents hold a stem: what the scores rest on.
CREATE VIRTUAL TABLE recall_stems USING fts5vocab('recall_index', 'row');

CREATE VIRTUAL TABLE recall_trigrams USING fts5(
    names, content = 'recall_docs', content_rowid = 'doc', tokenize = 'trigram'
);

CREATE TRIGGER recall_docs_added AFTER INSERT ON recall_docs
BEGIN
    INSERT INTO recall_index (rowid, scope_token, author, body, prev, next, far, ask)
    VALUES (NEW.doc, NEW.scope_token, NEW.author, NEW.body, NEW.prev, NEW.next, NEW.far, NEW.ask);
    INSERT INTO recall_trigrams (rowid, names) VALUES (NEW.doc, NEW.names);
END;

CREATE TRIGGER recall_docs_removed AFTER DELETE ON recall_docs
BEGIN
    INSERT INTO recall_index (recall_index, rowid, scope_token, author, body, prev, next, far, ask)
    VALUES ('delete', OLD.doc, OLD.scope_token, OLD.author, OLD.body, OLD.prev, OLD.next, OLD.far, OLD.ask);
    INSERT INTO recall_trigrams (recall_trigrams, rowid, names) VALUES ('delete', OLD.doc, OLD.names);
END;

CREATE TRIGGER recall_docs_changed AFTER UPDATE ON recall_docs
BEGIN
    INSERT INTO recall_index (recall_index, rowid, scope_token, author, body, prev, next, far, ask)
    VALUES ('delete', OLD.doc, OLD.scope_token, OLD.author, OLD.body, OLD.prev, OLD.next, OLD.far, OLD.ask);
    INSERT INTO recall_index (rowid, scope_token, author, body, prev, next, far, ask)
    VALUES (NEW.doc, NEW.scope_token, NEW.author, NEW.body, NEW.prev, NEW.next, NEW.far, NEW.ask);
    INSERT INTO recall_trigrams (recall_trigrams, rowid, names) VALUES ('delete', OLD.doc, OLD.names);
    INSERT INTO recall_trigrams (rowid, names) VALUES (NEW.doc, NEW.names);
END;
