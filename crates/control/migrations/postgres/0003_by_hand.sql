-- Rows that people write with SQL: ids and times by default, CHECKs on what columns hold, and triggers that note what was
-- changed, so that every node has it in force within two seconds and the audit names it.
--
-- CHECKs are NOT VALID: rows that are there already stay as they are, left out of decisions if they make no sense and
-- named in the status of each node, until somebody mends them.

-- Functions run with the rights of their owner (SECURITY DEFINER), so that a role that may write to one table need not be
-- granted more. What they name is looked up in the schemas of the tables, and among temporary objects last: those come first
-- unless they are named, and every role may make them. For the same reason arguments are of the very types that are
-- declared, so that nothing can be put beside what is meant that matches better.
SELECT set_config('search_path', string_agg(quote_ident(name), ', ' ORDER BY place) || ', pg_temp', TRUE)
FROM unnest(current_schemas(FALSE)) WITH ORDINALITY AS searched (name, place) WHERE name NOT LIKE 'pg\_temp%';

-- What was changed with SQL, until a node has taken it over into the audit.
CREATE TABLE tollgate_sql_edits (
    kind       TEXT COLLATE "C" NOT NULL, -- rule, override, client, namespace, token, everything
    namespace  TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    existed    BOOLEAN NOT NULL,          -- whether it was there before
    written_by TEXT NOT NULL,             -- the role that wrote it last
    PRIMARY KEY (kind, namespace, id)
);

-- Constraints that go. Their names were made by PostgreSQL.
DO $$
DECLARE
    old RECORD;
BEGIN
    FOR old IN SELECT conrelid::REGCLASS::TEXT AS of_table, conname FROM pg_constraint
        WHERE (conrelid = 'rate_limit_overrides'::REGCLASS AND contype = 'f')
           OR (conrelid = 'rate_limit_violations'::REGCLASS AND contype = 'u')
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', old.of_table, old.conname);
    END LOOP;
END $$;

-- A row that is inserted without a rule_id gets a number as one.
CREATE SEQUENCE rate_limit_rule_ids;
CREATE FUNCTION tollgate_rule_id() RETURNS TEXT LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    next_id TEXT;
BEGIN
    LOOP
        next_id := nextval('rate_limit_rule_ids'::REGCLASS)::TEXT;
        EXIT WHEN NOT EXISTS (SELECT 1 FROM rate_limit_rules WHERE rule_id = next_id);
    END LOOP;
    RETURN next_id;
END $$;

ALTER TABLE rate_limit_rules ALTER COLUMN rule_id SET DEFAULT tollgate_rule_id();
ALTER TABLE rate_limit_rules ALTER COLUMN burst_size DROP NOT NULL; -- windows have none
ALTER TABLE rate_limit_rules
    ADD CONSTRAINT rule_namespace CHECK (namespace <> '') NOT VALID,
    ADD CONSTRAINT rule_id CHECK (rule_id <> '') NOT VALID,
    ADD CONSTRAINT rule_match CHECK (jsonb_typeof("match") = 'object') NOT VALID,
    ADD CONSTRAINT rule_algorithm CHECK (algorithm IN
        ('token_bucket', 'gcra', 'leaky_bucket', 'fixed_window', 'sliding_window', 'sliding_window_counter',
         'sliding_window_log', 'concurrency')) NOT VALID,
    ADD CONSTRAINT rule_max_requests CHECK (max_requests >= 0) NOT VALID,
    ADD CONSTRAINT rule_window_secs CHECK (window_secs >= 0) NOT VALID,
    ADD CONSTRAINT rule_window_ms CHECK (window_ms BETWEEN 0 AND 999) NOT VALID,
    ADD CONSTRAINT rule_burst_size CHECK (burst_size >= 0) NOT VALID,
    ADD CONSTRAINT rule_mode CHECK (mode IN ('enforce', 'shadow', 'off')) NOT VALID,
    ADD CONSTRAINT rule_consistency CHECK (consistency IN ('exact', 'leased', 'async', 'local')) NOT VALID,
    ADD CONSTRAINT rule_on_fail CHECK (on_fail IN ('allow', 'deny', 'local')) NOT VALID,
    ADD CONSTRAINT rule_options CHECK (jsonb_typeof(options) = 'object') NOT VALID;

-- The rule of an override may stand in a file, so nothing refers to the table of rules; what belonged to a rule still goes
-- with it.
ALTER TABLE rate_limit_overrides
    ALTER COLUMN override_id SET DEFAULT substr(replace(gen_random_uuid()::TEXT, '-', ''), 1, 16);
ALTER TABLE rate_limit_overrides ALTER COLUMN burst_size DROP NOT NULL;
ALTER TABLE rate_limit_overrides
    ADD CONSTRAINT override_namespace CHECK (namespace <> '') NOT VALID,
    ADD CONSTRAINT override_id CHECK (override_id <> '') NOT VALID,
    ADD CONSTRAINT override_client_key CHECK (client_key <> '') NOT VALID,
    ADD CONSTRAINT override_max_requests CHECK (max_requests >= 0) NOT VALID,
    ADD CONSTRAINT override_burst_size CHECK (burst_size >= 0) NOT VALID,
    ADD CONSTRAINT override_ends_after_it_begins CHECK (valid_from IS NULL OR valid_from < valid_until) NOT VALID;

ALTER TABLE clients
    ADD CONSTRAINT client_namespace CHECK (namespace <> '') NOT VALID,
    ADD CONSTRAINT client_key CHECK (client_key <> '') NOT VALID,
    ADD CONSTRAINT client_attributes CHECK (jsonb_typeof(attributes) = 'object') NOT VALID;
ALTER TABLE rate_limit_namespaces
    ADD CONSTRAINT namespace CHECK (namespace <> '') NOT VALID,
    ADD CONSTRAINT namespace_ipv6_prefix CHECK (ipv6_prefix BETWEEN 1 AND 128) NOT VALID,
    ADD CONSTRAINT namespace_escaped_slash CHECK (escaped_slash IN ('reject', 'keep')) NOT VALID;

-- Violations: the first count is what stood against the limit, the second how often it was refused.
ALTER TABLE rate_limit_violations ALTER COLUMN rule_id DROP NOT NULL; -- none if no rule is known
ALTER TABLE rate_limit_violations ALTER COLUMN violated_at SET DEFAULT now();
ALTER TABLE rate_limit_violations
    ADD COLUMN refused BIGINT NOT NULL DEFAULT 1,        -- how often it was refused in that minute
    ADD COLUMN shadow  BOOLEAN NOT NULL DEFAULT FALSE,   -- it would have been refused, and was not: the rule is in shadow mode
    ADD COLUMN last_at TIMESTAMPTZ;                      -- the last time in that minute; none for violated_at
-- request_count: from now on the count that met the limit, the refused request included.
UPDATE rate_limit_violations SET refused = request_count, request_count = limit_value + 1;
ALTER TABLE rate_limit_violations
    ADD CONSTRAINT violation_request_count CHECK (request_count >= 0) NOT VALID,
    ADD CONSTRAINT violation_limit_value CHECK (limit_value >= 0) NOT VALID,
    ADD CONSTRAINT violation_refused CHECK (refused >= 0) NOT VALID;
ALTER TABLE rate_limit_violations
    ADD CONSTRAINT violation_of_a_minute UNIQUE (namespace, client_key, rule_id, violated_at, shadow);
CREATE INDEX rate_limit_violations_rule ON rate_limit_violations (rule_id, violated_at);

-- Triggers. The setting tollgate.writing is on inside a transaction of Tollgate itself, which keeps its own audit.

-- Before a row is written with SQL: the name of a rule, and when it was changed.
CREATE FUNCTION tollgate_sql_row() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.updated_at = OLD.updated_at THEN
        NEW.updated_at := clock_timestamp();
    END IF;
    IF TG_TABLE_NAME = 'rate_limit_rules' THEN
        IF NEW.name = '' THEN
            NEW.name := NEW.rule_id;
        END IF;
    END IF;
    RETURN NEW;
END $$;

-- Notes an edit. An entry that is there already is locked, so that no node takes it over before this edit is committed.
CREATE FUNCTION tollgate_note_edit(edit_kind TEXT, edit_row JSONB, id_column TEXT, row_existed BOOLEAN) RETURNS VOID
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed, written_by)
    VALUES (edit_kind, COALESCE(edit_row ->> 'namespace', ''), edit_row ->> id_column, row_existed, session_user)
    ON CONFLICT (kind, namespace, id) DO UPDATE SET written_by = excluded.written_by;
$$;

-- After a row was written with SQL. Arguments: the kind, and the column of its id.
CREATE FUNCTION tollgate_sql_edit() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM tollgate_note_edit(TG_ARGV[0], pg_catalog.to_jsonb(OLD), TG_ARGV[1], TRUE);
    END IF;
    IF TG_OP = 'INSERT' THEN
        PERFORM tollgate_note_edit(TG_ARGV[0], pg_catalog.to_jsonb(NEW), TG_ARGV[1], FALSE);
    ELSIF TG_OP = 'UPDATE' AND pg_catalog.to_jsonb(OLD) ->> TG_ARGV[1] <> pg_catalog.to_jsonb(NEW) ->> TG_ARGV[1] THEN
        PERFORM tollgate_note_edit(TG_ARGV[0], pg_catalog.to_jsonb(NEW), TG_ARGV[1], FALSE);
    ELSIF TG_OP = 'UPDATE' AND pg_catalog.to_jsonb(OLD) ->> 'namespace' <> pg_catalog.to_jsonb(NEW) ->> 'namespace' THEN
        PERFORM tollgate_note_edit(TG_ARGV[0], pg_catalog.to_jsonb(NEW), TG_ARGV[1], FALSE);
    END IF;
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'rate_limit_rules' THEN
        DELETE FROM rate_limit_overrides WHERE namespace = OLD.namespace AND rule_id = OLD.rule_id;
        DELETE FROM rate_limit_rule_modes WHERE namespace = OLD.namespace AND rule_id = OLD.rule_id;
    END IF;
    PERFORM pg_notify('tollgate_generation', 'sql');
    RETURN NULL;
END $$;

-- A whole table was emptied at once.
CREATE FUNCTION tollgate_sql_truncate() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM tollgate_note_edit('everything'::TEXT, '{"id": ""}'::JSONB, 'id'::TEXT, TRUE);
    PERFORM pg_notify('tollgate_generation', 'sql');
    RETURN NULL;
END $$;

-- Triggers need no right to execute their function. Called directly, or put on a table of the caller's own, it would write
-- what the caller may not.
REVOKE ALL ON FUNCTION tollgate_sql_row(), tollgate_note_edit(TEXT, JSONB, TEXT, BOOLEAN), tollgate_sql_edit(),
    tollgate_sql_truncate() FROM PUBLIC;

CREATE TRIGGER rate_limit_rules_row BEFORE INSERT OR UPDATE ON rate_limit_rules
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION tollgate_sql_row();
CREATE TRIGGER rate_limit_overrides_row BEFORE UPDATE ON rate_limit_overrides
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION tollgate_sql_row();
CREATE TRIGGER rate_limit_rule_modes_row BEFORE UPDATE ON rate_limit_rule_modes
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION tollgate_sql_row();
CREATE TRIGGER rate_limit_rule_modes_edit AFTER INSERT OR UPDATE OR DELETE ON rate_limit_rule_modes
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION tollgate_sql_edit('rule_mode', 'rule_id');
CREATE TRIGGER rate_limit_rule_modes_emptied AFTER TRUNCATE ON rate_limit_rule_modes
FOR EACH STATEMENT EXECUTE FUNCTION tollgate_sql_truncate();
CREATE TRIGGER clients_row BEFORE UPDATE ON clients FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION tollgate_sql_row();

CREATE TRIGGER rate_limit_rules_edit AFTER INSERT OR UPDATE OR DELETE ON rate_limit_rules
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION tollgate_sql_edit('rule', 'rule_id');
CREATE TRIGGER rate_limit_overrides_edit AFTER INSERT OR UPDATE OR DELETE ON rate_limit_overrides
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION tollgate_sql_edit('override', 'override_id');
CREATE TRIGGER clients_edit AFTER INSERT OR UPDATE OR DELETE ON clients
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION tollgate_sql_edit('client', 'client_key');
CREATE TRIGGER rate_limit_namespaces_edit AFTER INSERT OR UPDATE OR DELETE ON rate_limit_namespaces
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION tollgate_sql_edit('namespace', 'namespace');
-- Tokens: to revoke one with SQL is to revoke it. When one was used is no edit.
CREATE TRIGGER tokens_edit
AFTER INSERT OR DELETE OR UPDATE OF token_id, name, role, namespaces, hash, expires_at, revoked_at ON tokens
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION tollgate_sql_edit('token', 'token_id');

CREATE TRIGGER rate_limit_rules_emptied AFTER TRUNCATE ON rate_limit_rules
FOR EACH STATEMENT EXECUTE FUNCTION tollgate_sql_truncate();
CREATE TRIGGER rate_limit_overrides_emptied AFTER TRUNCATE ON rate_limit_overrides
FOR EACH STATEMENT EXECUTE FUNCTION tollgate_sql_truncate();
CREATE TRIGGER clients_emptied AFTER TRUNCATE ON clients
FOR EACH STATEMENT EXECUTE FUNCTION tollgate_sql_truncate();
CREATE TRIGGER rate_limit_namespaces_emptied AFTER TRUNCATE ON rate_limit_namespaces
FOR EACH STATEMENT EXECUTE FUNCTION tollgate_sql_truncate();
CREATE TRIGGER tokens_emptied AFTER TRUNCATE ON tokens
FOR EACH STATEMENT EXECUTE FUNCTION tollgate_sql_truncate();
