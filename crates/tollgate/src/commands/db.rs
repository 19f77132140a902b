//! `tollgate db ...`: the tables of the control plane, without a server.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Subcommand;
use serde_json::json;
use tollgate_control::{Control, Place, Schema};
use tollgate_server::config::{ControlSettings, DbPlace};

use crate::exit::Exit;
use crate::output::Output;
use crate::render::count;

/// What to do with the database.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Bring the tables to this version
    Migrate(Args),
    /// Tell how the tables stand to this version
    Status(Args),
}

/// Which database.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The database: sqlite (in the state directory), sqlite:PATH, postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "DB", env = "TOLLGATE_DB", hide_env_values = true, default_value = "sqlite")]
    db: String,
    /// The password of the database, so that its URL needs none
    #[arg(long, value_name = "FILE", env = "TOLLGATE_DB_PASSWORD_FILE", hide_env_values = true)]
    db_password_file: Option<PathBuf>,
    /// Where `sqlite` is
    #[arg(long, value_name = "DIR", env = "TOLLGATE_STATE_DIR", hide_env_values = true)]
    state_dir: Option<PathBuf>,
    /// Print JSON: {db, schema}, and the steps it took
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"A server migrates by itself when it starts, unless db_migrate is false: for a fleet
whose nodes may not change tables, somebody who may runs this first. Several at
once are safe, and nothing is done twice. Passwords are printed nowhere.

Examples:
  tollgate db status --db sqlite:/var/lib/tollgate/tollgate.db
  TOLLGATE_DB=postgres://owner@db.internal/limits tollgate db migrate \
    --db-password-file /etc/tollgate/owner-password

Exit codes:
  0  the tables are those of this version
  1  status: they are not; `db migrate` brings them there, unless they are newer
  2  wrong usage, no answer from the database"#;

/// Runs one of them.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    let (Command::Migrate(args) | Command::Status(args)) = command;
    let place = args.place()?;
    if let (Command::Status(_), Place::Sqlite(path)) = (command, &place)
        && !path.exists()
    {
        // To look is not to make one.
        return absent(&place, args, out);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start a runtime")?;
    runtime.block_on(async {
        let control = Control::open(&place).await.with_context(|| format!("cannot use {place}"))?;
        match command {
            Command::Migrate(_) => migrate(&control, &place, args, out).await,
            Command::Status(_) => status(&control, &place, args, out).await,
        }
    })
}

impl Args {
    fn place(&self) -> Result<Place> {
        // Never repeats the text: it may hold a password.
        let db: DbPlace = self.db.parse().map_err(|fault| anyhow!("--db: {fault}"))?;
        let settings = ControlSettings {
            db,
            password_file: self.db_password_file.clone(),
            state_dir: self.state_dir.clone(),
            ..ControlSettings::default()
        };
        settings.place().context("there is no database to look at: name one with --db")
    }
}

async fn migrate(control: &Control, place: &Place, args: &Args, out: &mut Output) -> Result<Exit> {
    let steps = control.migrate().await?;
    match args.json {
        true => out.json_line(&json!({ "db": place.to_string(), "schema": "current", "steps": steps }))?,
        false if steps == 0 => out.line(&format!("{place}: nothing to do"))?,
        false => out.line(&format!("{place}: {} run", count(steps, "migration")))?,
    }
    Ok(Exit::Ok)
}

fn absent(place: &Place, args: &Args, out: &mut Output) -> Result<Exit> {
    match args.json {
        true => out.json_line(&json!({ "db": place.to_string(), "schema": "absent" }))?,
        false => {
            out.line(&format!("{place}: not there yet; a server makes it when it starts, or tollgate db migrate"))?
        }
    }
    Ok(Exit::No)
}

async fn status(control: &Control, place: &Place, args: &Args, out: &mut Output) -> Result<Exit> {
    let schema = control.schema().await?;
    let palette = out.palette();
    let (word, said) = match schema {
        Schema::Current => ("current", palette.good("the tables are those of this version")),
        Schema::Behind(run, of) => {
            let missing = count(of.saturating_sub(run), "migration");
            ("behind", palette.warn(&format!("{missing} missing: run tollgate db migrate")))
        }
        Schema::Ahead => ("ahead", palette.bad("the tables are those of a newer version: use that one")),
    };
    match args.json {
        true => out.json_line(&json!({ "db": place.to_string(), "schema": word }))?,
        false => out.line(&format!("{place}: {said}"))?,
    }
    Ok(Exit::from_success(schema == Schema::Current))
}
