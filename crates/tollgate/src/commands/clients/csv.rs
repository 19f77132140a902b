//! Clients in CSV (RFC 4180): a header line, then one client per line.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

/// Parses clients, in the format of a rules file: the columns `client_key`, `tier` and `org` are fields, every other
/// column is an attribute. Blank cells are skipped.
pub fn clients(text: &str) -> Result<Vec<Value>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text); // spreadsheets write a byte order mark
    let mut records = records(text)?.into_iter();
    let (_, heading) = records.next().context("the file is empty: the first line names the columns")?;
    let heading: Vec<String> = heading.iter().map(|name| column(name)).collect();
    if !heading.iter().any(|name| name == "client_key") {
        bail!("the first line names no column client_key; it names: {}", heading.join(", "));
    }
    if let Some(twice) =
        heading.iter().enumerate().find_map(|(at, name)| heading.get(..at)?.contains(name).then_some(name))
    {
        bail!("the first line names the column {twice} twice");
    }
    records.map(|(line, cells)| client(line, &heading, cells)).collect()
}

/// The field of a column name.
fn column(name: &str) -> String {
    match name.trim().to_lowercase().as_str() {
        "key" | "client" | "client_key" => "client_key".to_owned(),
        "org" | "organisation" | "organization" => "org".to_owned(),
        "tier" | "plan" => "tier".to_owned(),
        _ => name.trim().to_owned(),
    }
}

fn client(line: usize, heading: &[String], cells: Vec<String>) -> Result<Value> {
    if cells.len() != heading.len() {
        bail!("line {line} has {} cells, the first line {}", cells.len(), heading.len());
    }
    let (mut client, mut attributes) = (Map::new(), Map::new());
    for (name, cell) in heading.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
        match name.as_str() {
            "client_key" | "tier" | "org" => client.insert(name.clone(), cell.into()),
            _ => attributes.insert(name.clone(), cell.into()),
        };
    }
    if !client.contains_key("client_key") {
        bail!("line {line} has no client_key");
    }
    if !attributes.is_empty() {
        client.insert("attributes".to_owned(), attributes.into());
    }
    Ok(client.into())
}

/// Cells by record, with the first line of each record. Blank lines are skipped.
fn records(text: &str) -> Result<Vec<(usize, Vec<String>)>> {
    let (mut records, mut cells, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut begun, mut quoted) = (1, 1, false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quoted, letter) {
            (true, '"') if letters.next_if_eq(&'"').is_some() => cell.push('"'),
            (true, '"') => quoted = false,
            (false, '"') if cell.is_empty() => quoted = true,
            (false, ',') => cells.push(std::mem::take(&mut cell)),
            (false, '\r') if letters.peek() == Some(&'\n') => {}
            (false, '\n') => {
                cells.push(std::mem::take(&mut cell));
                line += 1;
                push(&mut records, begun, std::mem::take(&mut cells));
                begun = line;
            }
            (_, letter) => {
                line += usize::from(letter == '\n');
                cell.push(letter);
            }
        }
    }
    if quoted {
        bail!("the quotes that open on or after line {begun} are never closed");
    }
    cells.push(cell);
    push(&mut records, begun, cells);
    Ok(records)
}

fn push(records: &mut Vec<(usize, Vec<String>)>, line: usize, cells: Vec<String>) {
    if cells.iter().any(|cell| !cell.trim().is_empty()) || cells.len() > 1 {
        records.push((line, cells));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parses_a_client_per_line() {
        let text =
            "\u{feff}Client_Key,tier,Organization,region\r\nkey:a,paid,\"Acme, \"\"Inc\"\"\",eu\r\n\r\nkey:b,,,\r\n";
        let expected = vec![
            json!({ "client_key": "key:a", "tier": "paid", "org": "Acme, \"Inc\"", "attributes": { "region": "eu" } }),
            json!({ "client_key": "key:b" }),
        ];
        assert_eq!(clients(text).unwrap(), expected);
        assert_eq!(clients("client_key\n").unwrap(), Vec::<Value>::new());
    }

    #[test]
    fn errors_name_the_line() {
        for (text, message) in [
            ("", "the file is empty"),
            ("tier,org\na,b\n", "no column client_key"),
            ("client_key,tier,plan\n", "tier twice"),
            ("client_key,tier\nkey:a\n", "line 2 has 1 cells, the first line 2"),
            ("client_key,tier\n\"key:a\n\",b\n,b\n", "line 4 has no client_key"),
            ("client_key\n\"key:a\n", "line 2 are never closed"),
        ] {
            let error = clients(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text:?}: {error}");
        }
    }
}
