//! The pages of the guide contain the tested configurations. To update them:
//! `UPDATE_PAGES=1 cargo test -p tollgate --test proxies`.

use std::fs;
use std::path::Path;

const PAGES: [&str; 5] = ["nginx", "caddy", "haproxy", "envoy", "traefik"];

#[test]
fn the_pages_contain_the_tested_configurations() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in PAGES {
        let path = root.join(format!("docs/guide/proxies/{page}.md"));
        let text = fs::read_to_string(&path).unwrap();
        let mut shown = 0;
        let fresh: Vec<String> = text
            .split("\n```")
            .enumerate()
            .map(|(place, part)| {
                // `deploy/proxies/nginx.conf`:
                let named = text
                    .split("\n```")
                    .nth(place.wrapping_sub(1))
                    .and_then(|before| before.lines().last()?.strip_prefix("`deploy/proxies/")?.strip_suffix("`:"));
                match (place % 2 == 1, named) {
                    (true, Some(file)) => {
                        shown += 1;
                        let language = part.lines().next().unwrap_or_default();
                        let file = fs::read_to_string(root.join("deploy/proxies").join(file)).unwrap();
                        format!("{language}\n{}", file.trim_end())
                    }
                    _ => part.to_owned(),
                }
            })
            .collect();
        assert!(shown > 0, "{page}.md shows no configuration");
        let fresh = fresh.join("\n```");
        if std::env::var_os("UPDATE_PAGES").is_some() {
            fs::write(&path, &fresh).unwrap();
        } else {
            assert!(
                text == fresh,
                "{page}.md is stale; write it with UPDATE_PAGES=1 cargo test -p tollgate --test proxies"
            );
        }
    }
}
