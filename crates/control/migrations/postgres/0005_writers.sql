-- Only a transaction that updated tollgate_state may write without being recorded by the triggers.
--
-- The setting tollgate.writing alone proved nothing: every role may set it, and then wrote to the tables unaudited. The first
-- statement of each transaction of Tollgate, also of earlier versions, updates the one row of tollgate_state, for which a
-- role needs the right to update that table. The version of the row that such a transaction sees is its own (xmin).

-- Temporary objects last, as in 0003_by_hand.sql.
SELECT set_config('search_path', string_agg(quote_ident(name), ', ' ORDER BY place) || ', pg_temp', TRUE)
FROM unnest(current_schemas(FALSE)) WITH ORDINALITY AS searched (name, place) WHERE name NOT LIKE 'pg\_temp%';

-- True inside a transaction of Tollgate. The condition of a trigger is evaluated with the rights of the role that writes, so
-- every role may execute this.
CREATE FUNCTION tollgate_writes() RETURNS BOOLEAN LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM tollgate_state WHERE xmin = pg_current_xact_id()::XID);
END $$;

DROP TRIGGER rate_limit_rules_row ON rate_limit_rules;
CREATE TRIGGER rate_limit_rules_row BEFORE INSERT OR UPDATE ON rate_limit_rules
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_row();
DROP TRIGGER rate_limit_rules_name ON rate_limit_rules;
CREATE TRIGGER rate_limit_rules_name BEFORE INSERT OR UPDATE OF namespace, rule_id, name ON rate_limit_rules
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_rule_name();
DROP TRIGGER rate_limit_rules_edit ON rate_limit_rules;
CREATE TRIGGER rate_limit_rules_edit AFTER INSERT OR UPDATE OR DELETE ON rate_limit_rules
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_edit('rule', 'rule_id');

DROP TRIGGER rate_limit_overrides_row ON rate_limit_overrides;
CREATE TRIGGER rate_limit_overrides_row BEFORE UPDATE ON rate_limit_overrides
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_row();
DROP TRIGGER rate_limit_overrides_edit ON rate_limit_overrides;
CREATE TRIGGER rate_limit_overrides_edit AFTER INSERT OR UPDATE OR DELETE ON rate_limit_overrides
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_edit('override', 'override_id');

DROP TRIGGER rate_limit_rule_modes_row ON rate_limit_rule_modes;
CREATE TRIGGER rate_limit_rule_modes_row BEFORE UPDATE ON rate_limit_rule_modes
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_row();
DROP TRIGGER rate_limit_rule_modes_edit ON rate_limit_rule_modes;
CREATE TRIGGER rate_limit_rule_modes_edit AFTER INSERT OR UPDATE OR DELETE ON rate_limit_rule_modes
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_edit('rule_mode', 'rule_id');

DROP TRIGGER clients_row ON clients;
CREATE TRIGGER clients_row BEFORE UPDATE ON clients
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_row();
DROP TRIGGER clients_edit ON clients;
CREATE TRIGGER clients_edit AFTER INSERT OR UPDATE OR DELETE ON clients
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_edit('client', 'client_key');

DROP TRIGGER rate_limit_namespaces_edit ON rate_limit_namespaces;
CREATE TRIGGER rate_limit_namespaces_edit AFTER INSERT OR UPDATE OR DELETE ON rate_limit_namespaces
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_edit('namespace', 'namespace');

DROP TRIGGER tokens_edit ON tokens;
CREATE TRIGGER tokens_edit
AFTER INSERT OR DELETE OR UPDATE OF token_id, name, role, namespaces, hash, expires_at, revoked_at ON tokens
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_edit('token', 'token_id');

-- TRUNCATE fires no triggers for rows: overrides and modes of the rules stayed behind. They are deleted, and recorded, before
-- it, as by DELETE; those of rules in files stay.
CREATE FUNCTION tollgate_sql_truncate_rules() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM rate_limit_overrides AS dependent USING rate_limit_rules AS rule
    WHERE dependent.namespace = rule.namespace AND dependent.rule_id = rule.rule_id;
    DELETE FROM rate_limit_rule_modes AS dependent USING rate_limit_rules AS rule
    WHERE dependent.namespace = rule.namespace AND dependent.rule_id = rule.rule_id;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION tollgate_sql_truncate_rules() FROM PUBLIC;

CREATE TRIGGER rate_limit_rules_emptying BEFORE TRUNCATE ON rate_limit_rules
FOR EACH STATEMENT EXECUTE FUNCTION tollgate_sql_truncate_rules();
