CREATE TABLE home_facts (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    at_us INTEGER NOT NULL,
    workspace_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    kind TEXT NOT NULL,
    principal TEXT NOT NULL,
    trace_id TEXT NOT NULL,
    body TEXT,
    body_sha256 TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;

-- serves waits and followers that want some kinds from a sequence on
CREATE INDEX journal_by_kind ON journal (kind, seq);

-- serves the history of one subject
CREATE INDEX journal_by_subject ON journal (subject, seq);

CREATE TRIGGER journal_is_append_only
BEFORE DELETE ON journal
BEGIN
    SELECT RAISE(ABORT, 'the journal is append-only');
END;

-- an erasure may blank a body and nothing else
CREATE TRIGGER journal_keeps_its_rows
BEFORE UPDATE ON journal
WHEN NEW.body IS NOT NULL
    OR NEW.seq IS NOT OLD.seq
    OR NEW.at_us IS NOT OLD.at_us
    OR NEW.workspace_id IS NOT OLD.workspace_id
    OR NEW.subject IS NOT OLD.subject
    OR NEW.kind IS NOT OLD.kind
    OR NEW.principal IS NOT OLD.principal
    OR NEW.trace_id IS NOT OLD.trace_id
    OR NEW.body_sha256 IS NOT OLD.body_sha256
    OR NEW.hash IS NOT OLD.hash
BEGIN
    SELECT RAISE(ABORT, 'a journal entry never changes');
END;

CREATE TABLE idempotency_keys (
    principal TEXT NOT NULL,
    operation TEXT NOT NULL,
    key TEXT NOT NULL,
    step INTEGER NOT NULL,
    arguments_sha256 TEXT NOT NULL,
    result TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (principal, operation, key, step)
) STRICT;

CREATE TABLE outbox (
    delivery_id TEXT PRIMARY KEY,
    topic TEXT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'sent', 'failed')),
    attempts INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    error TEXT NOT NULL
) STRICT;

-- serves the next delivery that is due
CREATE INDEX outbox_due ON outbox (next_at) WHERE state = 'pending';

CREATE TABLE quarantine (
    entity TEXT NOT NULL,
    ref TEXT NOT NULL,
    reason TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    PRIMARY KEY (entity, ref)
) STRICT;
