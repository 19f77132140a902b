//! The reference page, generated from the table.

use crate::setting::{Section, Setting};
use crate::settings::SETTINGS;

/// The page `docs/guide/configuration.md`.
pub fn reference() -> String {
    let mut page = OPENING.to_owned();
    let mut section: Option<Section> = None;
    for setting in SETTINGS {
        if section != Some(setting.section) {
            section = Some(setting.section);
            page.push_str(&format!("\n## {}\n\n", setting.section.title()));
            page.push_str("| setting | value | default | |\n|---|---|---|---|\n");
        }
        page.push_str(&row(setting));
    }
    page
}

fn row(setting: &Setting) -> String {
    let default = match setting.default_text() {
        text if text.is_empty() => setting.absent.to_owned(),
        text => format!("`{text}`"),
    };
    format!("| `{}` | {} | {default} | {} |\n", setting.name, values(setting), setting.help)
}

fn values(setting: &Setting) -> String {
    let words: Vec<String> = setting.words().iter().map(|word| format!("`{word}`")).collect();
    match (words.is_empty(), setting.bounds()) {
        (false, _) => words.join(", "),
        (true, Some(bounds)) => format!("{}, {bounds}", setting.value_name),
        (true, None) if setting.is_switch() => "`true`, `false`".to_owned(),
        (true, None) => setting.value_name.to_owned(),
    }
}

const OPENING: &str = r#"<!-- Written by `tollgate config --reference`; a test compares. -->

# Configuration

Nothing has to be configured: `tollgate serve` starts with the defaults below. Every setting can be given in three ways:

| | spelling | example |
|---|---|---|
| flag | `--` and dashes | `tollgate serve --max-connections 500` |
| environment | `TOLLGATE_` and capitals | `TOLLGATE_MAX_CONNECTIONS=500` |
| file | as listed below | `max_connections: 500` |

A flag beats the environment, the environment beats the file, the file beats the default. The file is named by
`--config FILE` or `TOLLGATE_CONFIG`; it is YAML, one setting per line, at most 1 MiB:

```yaml
http: [127.0.0.1:8080, "unix:/run/tollgate.sock"]
rules: /etc/tollgate/rules.yaml
log_format: json
```

`tollgate config` takes the same flags, environment and file as `tollgate serve`, and prints what is in effect and where
each value comes from, in the form of such a file; `tollgate config --default > tollgate.yaml` makes a first one.
Anything unknown or out of range is refused with its place, all mistakes at once. A variable that begins with `TOLLGATE_`
and is no setting gets a warning.

Values:

- **ADDR** is `HOST:PORT` with an IP address or `localhost` (`127.0.0.1:8080`, `[::1]:8080`), or `unix:/path`. Port 0
  picks a free one. An address that other machines can reach needs `token_file` or `allow_anonymous`.
- **DURATION** is a whole number with a unit: `250ms`, `30s`, `5m`, `1h30m`.
- **SIZE** is a whole number of bytes, or of `KiB`, `MiB`, `GiB`: `64KiB`.
- **FILE** is a path, relative to the working directory wherever it was set.
- Lists are joined by commas (`TOLLGATE_HTTP=127.0.0.1:8080,[::1]:8080`); a flag may also be repeated, and the file
  may have a YAML list. A variable that is set to nothing counts as not set.
- A flag for `true` needs no value: `--allow-anonymous`, `--allow-anonymous=false`.
"#;
