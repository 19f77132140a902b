//! Triggers of PostgreSQL run with the rights of the tables' owner, for roles that may write to one table only. Objects
//! made by such a role must not be executed or written to instead.

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tollgate_control::{AuditFilter, DatabaseUrl, Page, Precondition};

use crate::databases::Database;
use crate::drafts::{apply, per_second, rule};

/// A connection of a role that may only read and update rules.
async fn low(db: &Database) -> (PgConnection, String) {
    let DatabaseUrl::Postgres(url) = &db.url else { panic!("a role of PostgreSQL") };
    let mut connection = PgConnection::connect(url).await.unwrap();
    let name: String =
        sqlx::query_scalar("SELECT 'low_' || current_database()").fetch_one(&mut connection).await.unwrap();
    let grant = format!(
        "CREATE ROLE \"{name}\"; GRANT SELECT, UPDATE ON rate_limit_rules TO \"{name}\"; SET SESSION AUTHORIZATION \"{name}\""
    );
    sqlx::raw_sql(AssertSqlSafe(grant)).execute(&mut connection).await.unwrap();
    (connection, name)
}

async fn run(connection: &mut PgConnection, text: &'static str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(text).execute(connection).await.map(|_| ())
}

/// Drops the role: other runs may use the same cluster.
async fn done(mut connection: PgConnection, name: &str) {
    let drop = format!("RESET SESSION AUTHORIZATION; DROP OWNED BY \"{name}\"; DROP ROLE \"{name}\"");
    sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut connection).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_table_neither_hides_an_edit_nor_runs_code_as_the_owner() {
    let db = Database::postgres().await;
    apply(&db.control, [rule("a", per_second(1), Precondition::Absent)]).await;
    let (mut connection, name) = low(&db).await;
    run(
        &mut connection,
        "CREATE TEMP TABLE tollgate_sql_edits (kind TEXT, namespace TEXT, id TEXT, existed BOOLEAN, written_by TEXT, \
             PRIMARY KEY (kind, namespace, id)); \
         CREATE FUNCTION pg_temp.own() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO public.tokens (token_id, name, role, hash, created_at, created_by) \
             VALUES ('evil', 'evil', 'admin', sha256('x'::BYTEA), now(), 'me'); RETURN NEW; END $$; \
         CREATE TRIGGER own BEFORE INSERT ON tollgate_sql_edits FOR EACH ROW EXECUTE FUNCTION pg_temp.own();",
    )
    .await
    .unwrap();
    run(&mut connection, "UPDATE rate_limit_rules SET max_requests = 97").await.unwrap();
    assert_eq!(db.texts("SELECT token_id FROM tokens").await, Vec::<String>::new());
    assert_eq!(db.texts("SELECT written_by || ' ' || id FROM tollgate_sql_edits").await, [format!("{name} a")]);
    while db.control.record_sql_edits().await.unwrap() {}
    let told = db.control.audit(&AuditFilter::default(), &Page::default()).await.unwrap().entries;
    assert_eq!((told[0].author_name.as_str(), told[0].id.as_str()), (name.as_str(), "a"));
    done(connection, &name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_setting_of_tollgate_does_not_hide_an_edit() {
    let db = Database::postgres().await;
    apply(&db.control, [rule("a", per_second(1), Precondition::Absent)]).await;
    let (mut connection, name) = low(&db).await;
    for write in [
        "SET tollgate.writing = 'on'; UPDATE rate_limit_rules SET max_requests = 97; RESET tollgate.writing",
        // Set between the checks before and after the statement.
        "UPDATE rate_limit_rules SET max_requests = CASE set_config('tollgate.writing', 'on', TRUE) WHEN 'on' THEN 98 END \
         RETURNING set_config('tollgate.writing', 'off', TRUE)",
    ] {
        run(&mut connection, write).await.unwrap();
        assert_eq!(db.texts("SELECT written_by FROM tollgate_sql_edits").await, [name.as_str()], "{write}");
        while db.control.record_sql_edits().await.unwrap() {}
    }
    let authors = db.texts("SELECT author_name FROM audit WHERE author = 'sql'").await;
    assert_eq!(authors, [name.as_str(), name.as_str()]);
    done(connection, &name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_roles_cannot_call_functions_of_the_owner() {
    let db = Database::postgres().await;
    apply(&db.control, [rule("a", per_second(1), Precondition::Absent)]).await;
    let (mut connection, name) = low(&db).await;
    let note = "SELECT public.tollgate_note_edit('rule', '{\"id\": \"x\"}', 'id', TRUE)";
    let said = run(&mut connection, note).await.unwrap_err().to_string();
    assert!(said.contains("permission denied"), "{said}");
    let borrow = "CREATE TEMP TABLE rate_limit_rules (namespace TEXT, rule_id TEXT); \
                  CREATE TRIGGER borrowed AFTER DELETE ON pg_temp.rate_limit_rules FOR EACH ROW \
                  EXECUTE FUNCTION public.tollgate_sql_edit('rule', 'rule_id')";
    let said = run(&mut connection, borrow).await.unwrap_err().to_string();
    assert!(said.contains("permission denied"), "{said}");
    assert_eq!(db.texts("SELECT id FROM tollgate_sql_edits").await, Vec::<String>::new());
    done(connection, &name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_function_of_the_owner_looks_at_temporary_objects_last() {
    let db = Database::postgres().await;
    let others = "SELECT proname::TEXT FROM pg_proc WHERE prosecdef AND proname LIKE 'tollgate%' \
                  AND NOT EXISTS (SELECT 1 FROM unnest(proconfig) AS set WHERE set LIKE 'search_path=%, pg_temp')";
    assert_eq!(db.texts(others).await, Vec::<String>::new());
    let all = "SELECT CAST(COUNT(*) AS TEXT) FROM pg_proc WHERE prosecdef AND proname LIKE 'tollgate%'";
    assert_eq!(db.texts(all).await, ["9"]);
}
