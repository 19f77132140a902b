//! Text tables with aligned columns, also with coloured cells.

use super::visible;

/// Rows of cells under a heading.
#[derive(Debug, Default)]
pub struct TextTable {
    rows: Vec<Vec<Cell>>,
}

#[derive(Debug)]
struct Cell {
    width: usize,
    painted: String,
}

impl TextTable {
    /// A table with a heading.
    pub fn new<'h>(heading: impl IntoIterator<Item = &'h str>, paint: impl Fn(&str) -> String) -> TextTable {
        let mut table = TextTable::default();
        table.row(heading.into_iter().map(|text| (text.to_owned(), paint(text))));
        table
    }

    /// Adds a row of cells: the plain text, which determines the width, and the coloured text.
    pub fn row(&mut self, cells: impl IntoIterator<Item = (String, String)>) {
        let cell = |(plain, painted): (String, String)| Cell { width: visible(&plain).chars().count(), painted };
        self.rows.push(cells.into_iter().map(cell).collect());
    }
}

/// A cell without colour.
pub fn cell(text: String) -> (String, String) {
    let painted = visible(&text);
    (text, painted)
}

impl std::fmt::Display for TextTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut gap = 0;
            for (cell, width) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
                if cell.width > 0 {
                    write!(f, "{:gap$}{}", "", cell.painted)?;
                    gap = 0;
                }
                gap += width - cell.width + 2;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
