//! The client libraries of all languages against a real server: the tables of `sdk/conformance`, whose README says what
//! they hold and what a library's `conformance` program does.
//!
//! One test for each language and table, and one for each framework. A language has a row in `languages.rs` and a line
//! below; its program is built once. What fails is listed by scenario, with what was expected.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod checks;
mod guide;
mod http;
mod languages;
mod limiter;
mod link;
mod matching;
mod program;
mod run;
mod scenario;

macro_rules! conformance {
    ($language:ident: $($framework:ident),*) => {
        mod $language {
            use crate::run::{Table, run};

            #[test]
            fn client() {
                run(stringify!($language), &Table::Client);
            }

            #[test]
            fn gcra() {
                run(stringify!($language), &Table::Lines("gcra"));
            }

            #[test]
            fn retry() {
                run(stringify!($language), &Table::Lines("retry"));
            }

            #[test]
            fn outages() {
                run(stringify!($language), &Table::Outages);
            }

            mod apps {
                $(
                    #[test]
                    fn $framework() {
                        crate::run::run(stringify!($language), &crate::run::Table::Apps(stringify!($framework)));
                    }
                )*
            }
        }
    };
}

conformance!(bun: express, fastify, fetch, hono, nest);
conformance!(deno: express, fastify, fetch, hono, nest);
conformance!(go: chi, gin, nethttp);
conformance!(java: servlet, spring);
conformance!(python: django, django_asgi, fastapi, flask, starlette);
conformance!(python_asyncio:);
conformance!(rust: axum);
conformance!(typescript: express, fastify, fetch, hono, nest, next);
