//! Line charts as SVG, for the pictures in the documents.
//!
//! Small on purpose: axes, lines, steps, dots, levels and marks, each named where it ends; charts that share their
//! horizontal axis stand on top of each other by [`stacked`]. The same input gives the same text, so pictures can be
//! compared and kept. Colours work on light and dark pages; no font is embedded, none is fetched.
//!
//! ```
//! use tollgate_lab::plot::{Plot, Scale};
//! let svg = Plot::new("Time per check")
//!     .x("keys", Scale::Log10)
//!     .y("ns", Scale::Linear)
//!     .line("Tollgate", [(1e3, 60.0), (1e6, 240.0)])
//!     .to_svg();
//! assert!(svg.starts_with("<svg "));
//! ```

mod axis;
mod labels;
mod stack;

use std::fmt::Write as _;

use self::axis::Axis;
pub use self::axis::Scale;
pub use self::stack::stacked;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 52.0;
const BOTTOM_UNNAMED: f64 = 30.0;

/// Colours of medium lightness that are distinct for colour-blind readers.
const COLOURS: [&str; 7] = ["#0a84c6", "#e0752d", "#18a076", "#c4609c", "#8a6fd1", "#b08c1a", "#7d8794"];

/// For series that are there for comparison only.
const MUTED: &str = "#8a929c";

const STYLE: &str = "\
text{font-family:system-ui,sans-serif;font-size:12px;fill:#5c6570}\
.title{font-size:15px;font-weight:600;fill:#6b7480}\
.grid{stroke:#8a929c;stroke-opacity:.28}\
.axis{stroke:#8a929c}\
.series{fill:none;stroke-width:2;stroke-linejoin:round}\
.level{stroke-width:1.5;stroke-dasharray:6 4}\
.mark{stroke:#8a929c;stroke-dasharray:2 3}\
@media (prefers-color-scheme:dark){text{fill:#a9b2bc}.title{fill:#e6e9ec}}";

/// A chart under construction.
#[derive(Clone, Debug)]
pub struct Plot {
    title: String,
    x: (String, Scale),
    y: (String, Scale),
    height: f64,
    series: Vec<Series>,
    marks: Vec<(String, f64)>,
}

#[derive(Clone, Debug)]
struct Series {
    name: String,
    form: Form,
    muted: bool,
    points: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Line,
    Steps,
    Dots,
    Level,
}

impl Plot {
    /// An empty chart with linear axes that have no name.
    pub fn new(title: &str) -> Plot {
        let axis = (String::new(), Scale::Linear);
        let title = title.to_owned();
        Plot { title, x: axis.clone(), y: axis, height: HEIGHT, series: Vec::new(), marks: Vec::new() }
    }

    /// Makes the chart lower or higher than it would be.
    pub fn height(self, height: f64) -> Plot {
        Plot { height, ..self }
    }

    /// Names the horizontal axis.
    pub fn x(self, name: &str, scale: Scale) -> Plot {
        Plot { x: (name.to_owned(), scale), ..self }
    }

    /// Names the vertical axis.
    pub fn y(self, name: &str, scale: Scale) -> Plot {
        Plot { y: (name.to_owned(), scale), ..self }
    }

    /// Adds points joined by a line, with a mark on each if they are few.
    pub fn line(self, name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Plot {
        self.with(name, Form::Line, points)
    }

    /// Adds a value that holds until the next point: a counter over time.
    pub fn steps(self, name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Plot {
        self.with(name, Form::Steps, points)
    }

    /// Adds points that stand alone: events.
    pub fn dots(self, name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Plot {
        self.with(name, Form::Dots, points)
    }

    /// Adds a dashed line across the chart: a limit.
    pub fn level(self, name: &str, y: f64) -> Plot {
        self.with(name, Form::Level, [(f64::NAN, y)])
    }

    /// Adds an upright line with its name at the top: a moment at which something happens.
    pub fn mark(mut self, name: &str, x: f64) -> Plot {
        self.marks.push((name.to_owned(), x));
        self
    }

    /// Draws the last series in grey: it is there for comparison only.
    pub fn muted(mut self) -> Plot {
        if let Some(series) = self.series.last_mut() {
            series.muted = true;
        }
        self
    }

    fn with(mut self, name: &str, form: Form, points: impl IntoIterator<Item = (f64, f64)>) -> Plot {
        let points = points.into_iter().collect();
        self.series.push(Series { name: name.to_owned(), form, muted: false, points });
        self
    }

    /// The chart as one SVG element.
    pub fn to_svg(&self) -> String {
        let mut svg = opening(&self.title, self.height);
        self.draw(&mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    fn draw(&self, svg: &mut String) {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let marks = self.marks.iter().map(|(_, x)| *x);
        let x = Axis::new(self.x.1, points().map(|(x, _)| *x).chain(marks), LEFT, WIDTH - RIGHT);
        let y = Axis::new(self.y.1, points().map(|(_, y)| *y), self.bottom(), TOP);
        text(svg, (LEFT, 24.0), "start", "title", &self.title);
        self.draw_axes(svg, &x, &y);
        for (series, colour) in self.coloured() {
            series.draw(svg, &x, &y, colour);
        }
        self.draw_names(svg, &y);
    }

    /// Each series with its colour; grey ones use none up.
    fn coloured(&self) -> impl Iterator<Item = (&Series, &'static str)> {
        let mut colours = COLOURS.iter().copied().cycle();
        self.series.iter().map(move |series| {
            let colour = if series.muted { None } else { colours.next() };
            (series, colour.unwrap_or(MUTED))
        })
    }

    /// Where the plane ends; a horizontal axis without a name needs room for its ticks only.
    fn bottom(&self) -> f64 {
        self.height - if self.x.0.is_empty() { BOTTOM_UNNAMED } else { BOTTOM }
    }

    fn draw_axes(&self, svg: &mut String, x: &Axis, y: &Axis) {
        let (bottom, right) = (self.bottom(), WIDTH - RIGHT);
        for (at, name) in y.ticks() {
            line(svg, "grid", (LEFT, at), (right, at));
            text(svg, (LEFT - 8.0, at + 4.0), "end", "", &name);
        }
        for (at, name) in x.ticks() {
            line(svg, "grid", (at, TOP), (at, bottom));
            text(svg, (at, bottom + 18.0), "middle", "", &name);
        }
        line(svg, "axis", (LEFT, bottom), (right, bottom));
        line(svg, "axis", (LEFT, TOP), (LEFT, bottom));
        text(svg, ((LEFT + right) / 2.0, self.height - 12.0), "middle", "", &self.x.0);
        text(svg, (LEFT, TOP - 8.0), "start", "", &self.y.0);
        for (name, at) in &self.marks {
            let at = x.place(*at);
            line(svg, "mark", (at, TOP), (at, bottom));
            text(svg, (at, TOP - 8.0), "middle", "", name);
        }
    }

    /// Every name beside the end of its line, moved apart where lines end together.
    fn draw_names(&self, svg: &mut String, y: &Axis) {
        let ends: Vec<f64> =
            self.series.iter().map(|series| series.points.last().map_or(TOP, |(_, value)| y.place(*value))).collect();
        let places = labels::apart(&ends, 16.0, TOP, self.bottom());
        for ((series, colour), place) in self.coloured().zip(places) {
            let at = (WIDTH - RIGHT + 14.0, place + 4.0);
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" style=\"fill:{colour}\">{}</text>",
                at.0,
                at.1,
                escaped(&series.name)
            );
        }
    }
}

/// The beginning of an SVG element of that height.
fn opening(title: &str, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{0}\">\n\
         <title>{0}</title>\n<style>{STYLE}</style>\n",
        escaped(title)
    )
}

/// Dots are drawn on lines of at most so many points.
const MARKED_MOST: usize = 24;

impl Series {
    fn draw(&self, svg: &mut String, x: &Axis, y: &Axis, colour: &str) {
        let places: Vec<(f64, f64)> = self.points.iter().map(|(a, b)| (x.place(*a), y.place(*b))).collect();
        match self.form {
            Form::Line => path(svg, colour, places.iter().copied()),
            Form::Steps => path(svg, colour, steps(&places)),
            Form::Dots => {}
            Form::Level => {
                let at = places.first().map_or(TOP, |(_, at)| *at);
                let _ = writeln!(
                    svg,
                    "<line class=\"level\" stroke=\"{colour}\" x1=\"{LEFT:.1}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\"/>",
                    WIDTH - RIGHT
                );
            }
        }
        let marked = self.form == Form::Dots || (self.form == Form::Line && places.len() <= MARKED_MOST);
        for (a, b) in places.iter().filter(|_| marked) {
            let _ = writeln!(svg, "<circle cx=\"{a:.1}\" cy=\"{b:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
    }
}

/// Each value held until the next point.
fn steps(places: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    let held = places.windows(2).flat_map(|pair| match pair {
        [(_, before), (next, after)] => [(*next, *before), (*next, *after)],
        _ => [(0.0, 0.0); 2],
    });
    places.first().copied().into_iter().chain(held)
}

fn path(svg: &mut String, colour: &str, places: impl Iterator<Item = (f64, f64)>) {
    let points: Vec<String> = places.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(svg, "<polyline class=\"series\" stroke=\"{colour}\" points=\"{}\"/>", points.join(" "));
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(svg: &mut String, at: (f64, f64), anchor: &str, class: &str, words: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let words = escaped(words);
    let _ = writeln!(svg, "<text{class} x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{words}</text>", at.0, at.1);
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_input_gives_the_same_text() {
        let plot = Plot::new("a < b").x("t", Scale::Linear).y("n", Scale::Log10);
        let plot = plot.steps("s & t", [(0.0, 1.0), (1.0, 10.0)]).dots("d", [(0.5, 3.0)]).level("limit", 5.0);
        let svg = plot.to_svg();
        assert_eq!(svg, plot.clone().to_svg());
        assert!(svg.contains("a &lt; b") && svg.contains("s &amp; t"), "{svg}");
        assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (1, 1));
        assert!(!svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn steps_hold_their_value_until_the_next_point() {
        let held: Vec<_> = steps(&[(0.0, 1.0), (2.0, 5.0)]).collect();
        assert_eq!(held, [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0)]);
    }

    #[test]
    fn what_is_muted_uses_no_colour_up() {
        let plot = Plot::new("a").line("b", [(0.0, 1.0)]).muted().line("c", [(1.0, 2.0)]).mark("now", 3.0);
        assert_eq!(plot.coloured().map(|(_, colour)| colour).collect::<Vec<_>>(), [MUTED, COLOURS[0]]);
        assert!(plot.to_svg().contains(">now</text>"));
    }

    #[test]
    fn an_empty_chart_is_a_chart() {
        assert!(Plot::new("nothing").to_svg().ends_with("</svg>\n"));
    }
}
