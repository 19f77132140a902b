//! Charts on top of each other, in one picture.

use std::fmt::Write as _;

use super::{Plot, opening};

/// The charts as one SVG element under the title of the first, from top to bottom.
pub fn stacked(plots: &[Plot]) -> String {
    let title = plots.first().map_or("", |plot| plot.title.as_str());
    let mut svg = opening(title, plots.iter().map(|plot| plot.height).sum());
    let mut top = 0.0;
    for plot in plots {
        let _ = writeln!(svg, "<g transform=\"translate(0 {top})\">");
        plot.draw(&mut svg);
        svg.push_str("</g>\n");
        top += plot.height;
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_stand_on_each_other() {
        let svg = stacked(&[Plot::new("above").height(200.0), Plot::new("below").height(100.0)]);
        assert!(svg.contains("viewBox=\"0 0 760 300\"") && svg.contains("translate(0 200)"), "{svg}");
        assert_eq!((svg.matches("<svg").count(), svg.matches("<style").count()), (1, 1));
    }
}
