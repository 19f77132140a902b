-- Units that a client gets once, on top of the amount of a quota.

-- Temporary objects last, as in 0003_by_hand.sql.
SELECT set_config('search_path', string_agg(quote_ident(name), ', ' ORDER BY place) || ', pg_temp', TRUE)
FROM unnest(current_schemas(FALSE)) WITH ORDINALITY AS searched (name, place) WHERE name NOT LIKE 'pg\_temp%';

CREATE TABLE rate_limit_grants (
    namespace   TEXT COLLATE "C" NOT NULL DEFAULT 'default' CONSTRAINT grant_namespace CHECK (namespace <> ''),
    grant_id    TEXT COLLATE "C" NOT NULL DEFAULT substr(replace(gen_random_uuid()::TEXT, '-', ''), 1, 16)
                CONSTRAINT grant_id CHECK (grant_id <> ''),
    client_key  TEXT COLLATE "C" NOT NULL                    -- whom it is for
                CONSTRAINT grant_client_key CHECK (client_key <> ''),
    rule_id     TEXT COLLATE "C" NOT NULL,                   -- the quota it adds to, in the database or in a file
    amount      BIGINT      NOT NULL                         -- its units
                CONSTRAINT grant_amount CHECK (amount BETWEEN 1 AND 9007199254740992),
    valid_from  TIMESTAMPTZ NOT NULL DEFAULT now(),          -- it counts in the period of this instant
    valid_until TIMESTAMPTZ,                                 -- first instant it counts no more; none for the end of the period
    reason      TEXT        NOT NULL DEFAULT '',
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    version     BIGINT      NOT NULL DEFAULT 0,              -- the generation that changed it last
    PRIMARY KEY (namespace, grant_id),
    CONSTRAINT grant_ends_after_it_begins CHECK (valid_until IS NULL OR valid_from < valid_until)
);
CREATE INDEX rate_limit_grants_client ON rate_limit_grants (client_key, namespace);
CREATE INDEX rate_limit_grants_rule ON rate_limit_grants (namespace, rule_id);

CREATE TRIGGER rate_limit_grants_row BEFORE UPDATE ON rate_limit_grants
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_row();
CREATE TRIGGER rate_limit_grants_edit AFTER INSERT OR UPDATE OR DELETE ON rate_limit_grants
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_edit('grant', 'grant_id');
CREATE TRIGGER rate_limit_grants_emptied AFTER TRUNCATE ON rate_limit_grants
FOR EACH STATEMENT EXECUTE FUNCTION tollgate_sql_truncate();

-- The grants of a rule go with it, also if it is deleted with SQL.
CREATE FUNCTION tollgate_sql_grants() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        DELETE FROM rate_limit_grants AS dependent USING rate_limit_rules AS rule
        WHERE dependent.namespace = rule.namespace AND dependent.rule_id = rule.rule_id;
    ELSE
        DELETE FROM rate_limit_grants WHERE namespace = OLD.namespace AND rule_id = OLD.rule_id;
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION tollgate_sql_grants() FROM PUBLIC;

CREATE TRIGGER rate_limit_rules_grants AFTER DELETE ON rate_limit_rules
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_grants();
CREATE TRIGGER rate_limit_rules_emptying_grants BEFORE TRUNCATE ON rate_limit_rules
FOR EACH STATEMENT EXECUTE FUNCTION tollgate_sql_grants();
