//! The order of a queue, what it sheds, and P26 over random loads.

use proptest::prelude::*;

use super::*;

const START: Time = Time::from_secs(1_000);
const LOW: Priority = Priority::of_rank(0);
const MIDDLE: Priority = Priority::of_rank(1);
const HIGH: Priority = Priority::of_rank(2);

fn at(millis: u64) -> Time {
    START.after(Span::from_millis(millis))
}

fn queue(max: usize, discipline: QueueDiscipline) -> WaitQueue<u32> {
    WaitQueue::new(QueueConfig { max, discipline, ..QueueConfig::default() })
}

fn expired(queue: &mut WaitQueue<u32>, now: Time) -> Vec<(u32, ShedReason)> {
    let mut all = Vec::new();
    queue.expire(now, |item, reason| all.push((item, reason)));
    all
}

fn serve(queue: &mut WaitQueue<u32>, now: Time) -> Option<u32> {
    let class = queue.next_class(now)?;
    queue.pop(class, now).map(|(item, _)| item)
}

#[test]
fn the_highest_class_and_then_the_oldest_is_served() {
    let mut queue = queue(9, QueueDiscipline::Fifo);
    for (item, class) in [(1, LOW), (2, HIGH), (3, MIDDLE), (4, HIGH), (5, Priority::HEALTH)] {
        queue.push(class, START, item);
    }
    let order: Vec<u32> = std::iter::from_fn(|| serve(&mut queue, START)).collect();
    assert_eq!(order, [5, 2, 4, 3, 1]);
    assert!(queue.is_empty());
}

#[test]
fn only_a_queue_that_stands_is_served_from_its_end() {
    let mut queue = queue(9, QueueDiscipline::Lifo);
    for item in 1..=4 {
        queue.push(LOW, at(u64::from(item)), item);
    }
    assert_eq!(serve(&mut queue, at(100)), Some(1), "a burst: first come, first served");
    assert_eq!(serve(&mut queue, at(101)), Some(4), "it was not empty for 100 ms");
    assert_eq!((serve(&mut queue, at(102)), serve(&mut queue, at(103))), (Some(3), Some(2)));
    queue.push(LOW, at(104), 5);
    queue.push(LOW, at(105), 6);
    assert_eq!(serve(&mut queue, at(106)), Some(5), "it was empty");
}

#[test]
fn codel_sheds_what_is_late_once_the_queue_stands() {
    let mut queue = queue(9, QueueDiscipline::Codel);
    for (item, millis) in [(1, 0), (2, 50), (3, 94), (4, 96)] {
        queue.push(LOW, at(millis), item);
    }
    assert_eq!(expired(&mut queue, at(99)), []);
    let late = expired(&mut queue, at(100));
    assert_eq!(late, [(1, ShedReason::Stale), (2, ShedReason::Stale), (3, ShedReason::Stale)]);
    assert_eq!((serve(&mut queue, at(100)), queue.len()), (Some(4), 0));
}

#[test]
fn each_request_waits_for_its_maximum_at_most() {
    for discipline in [QueueDiscipline::Fifo, QueueDiscipline::Lifo] {
        let mut queue = queue(9, discipline);
        queue.push(LOW, START, 1);
        queue.push(LOW, at(1), 2);
        assert_eq!(expired(&mut queue, at(499)), []);
        assert_eq!(expired(&mut queue, at(500)), [(1, ShedReason::WaitedTooLong)]);
        assert!(queue.is_overloaded(at(501), Span::SECOND));
        assert_eq!(expired(&mut queue, at(501)), [(2, ShedReason::WaitedTooLong)]);
        assert!(queue.is_overloaded(at(1_500), Span::SECOND) && !queue.is_overloaded(at(1_501), Span::SECOND));
    }
}

#[test]
fn a_full_queue_sheds_the_lowest_class() {
    let mut queue = queue(2, QueueDiscipline::Fifo);
    queue.push(LOW, START, 1);
    queue.push(MIDDLE, START, 2);
    assert_eq!(queue.push(LOW, START, 3), Pushed::Refused(3));
    assert!(matches!(queue.push(HIGH, START, 4), Pushed::Displacing(_, 1)));
    assert!(matches!(queue.push(HIGH, START, 5), Pushed::Displacing(_, 2)));
    assert_eq!(queue.push(HIGH, START, 6), Pushed::Refused(6));
    assert_eq!((serve(&mut queue, START), serve(&mut queue, START)), (Some(4), Some(5)));
}

#[test]
fn lower_classes_are_held_back_after_a_higher_one_is_shed() {
    let mut queue = queue(1, QueueDiscipline::Fifo);
    queue.push(MIDDLE, START, 1);
    assert_eq!(queue.push(MIDDLE, START, 2), Pushed::Refused(2));
    assert_eq!(serve(&mut queue, START), Some(1), "its own class is not held back");
    assert!(!queue.may_pass(LOW, at(99)) && queue.may_pass(MIDDLE, at(99)) && queue.may_pass(LOW, at(100)));
    queue.push(LOW, at(1), 3);
    assert_eq!((serve(&mut queue, at(99)), serve(&mut queue, at(100))), (None, Some(3)));
}

#[test]
fn an_arrival_does_not_overtake_what_was_held_back() {
    let mut queue = queue(1, QueueDiscipline::Fifo);
    queue.push(HIGH, START, 1);
    assert_eq!(queue.push(HIGH, START, 2), Pushed::Refused(2));
    assert_eq!(serve(&mut queue, START), Some(1));
    queue.push(MIDDLE, at(1), 3);
    let later = at(100); // no class is held back any more, and nothing was served since
    assert!(!queue.may_pass(LOW, later) && !queue.may_pass(MIDDLE, later) && queue.may_pass(HIGH, later));
}

#[test]
fn the_queue_grows_rather_than_shed_above_a_class_that_was_just_admitted() {
    let mut queue = queue(1, QueueDiscipline::Fifo);
    queue.passed(LOW, START);
    queue.push(HIGH, at(10), 1);
    assert!(matches!(queue.push(HIGH, at(20), 2), Pushed::Waiting(_)));
    assert_eq!(queue.push(HIGH, at(30), 3), Pushed::Refused(3), "at most twice its bound");
    assert_eq!(serve(&mut queue, at(40)), Some(1));
    assert_eq!(queue.push(HIGH, at(100), 4), Pushed::Refused(4), "100 ms later");
}

#[test]
fn a_request_that_leaves_frees_its_place() {
    let mut queue = queue(1, QueueDiscipline::Fifo);
    let Pushed::Waiting(number) = queue.push(LOW, START, 1) else { panic!("there is a place") };
    assert_eq!((queue.remove(LOW, number), queue.remove(LOW, number)), (Some(1), None));
    assert!(matches!(queue.push(LOW, START, 2), Pushed::Waiting(_)));
    assert!(!queue.is_overloaded(START, Span::SECOND), "leaving is not shedding");
}

#[derive(Clone, Debug)]
enum Step {
    Arrive(u8),
    End,
    Leave(usize),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u8..3).prop_map(Step::Arrive),
        2 => Just(Step::End),
        1 => (0usize..8).prop_map(Step::Leave),
        3 => (1u64..40).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..400)
}

/// One upstream with a few slots; what was admitted and shed, and when.
struct Run {
    queue: WaitQueue<u32>,
    classes: Vec<Priority>,
    waiting: Vec<(u64, Priority, u32)>,
    free: u32,
    now: Time,
    admitted: Vec<(Time, Priority)>,
    shed: Vec<(Time, Priority)>,
}

impl Run {
    fn new(config: QueueConfig) -> Run {
        let queue = WaitQueue::new(config);
        Run { queue, classes: vec![], waiting: vec![], free: 2, now: START, admitted: vec![], shed: vec![] }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Arrive(rank) => self.arrive(Priority::of_rank(rank)),
            Step::End => self.free = (self.free + 1).min(2),
            Step::Leave(index) if index < self.waiting.len() => {
                let (number, class, _) = self.waiting.remove(index);
                assert!(self.queue.remove(class, number).is_some());
            }
            Step::Leave(_) => {}
            Step::Pass(millis) => self.now = self.now.after(Span::from_millis(millis)),
        }
        self.dispatch();
    }

    fn arrive(&mut self, class: Priority) {
        let item = self.classes.len() as u32;
        self.classes.push(class);
        if self.free > 0 && self.queue.may_pass(class, self.now) {
            self.queue.passed(class, self.now);
            return self.admit(class);
        }
        match self.queue.push(class, self.now, item) {
            Pushed::Waiting(number) => self.waiting.push((number, class, item)),
            Pushed::Displacing(number, displaced) => {
                self.waiting.push((number, class, item));
                self.lose(displaced);
            }
            Pushed::Refused(_) => self.shed.push((self.now, class)),
        }
    }

    fn dispatch(&mut self) {
        let mut lost = Vec::new();
        self.queue.expire(self.now, |item, _| lost.push(item));
        lost.into_iter().for_each(|item| self.lose(item));
        while self.free > 0
            && let Some(class) = self.queue.next_class(self.now)
        {
            let (item, _) = self.queue.pop(class, self.now).expect("the class waits");
            self.waiting.retain(|(.., waiting)| *waiting != item);
            self.admit(class);
        }
    }

    fn admit(&mut self, class: Priority) {
        assert!(self.waiting.iter().all(|(_, waiting, _)| *waiting <= class), "a higher class waits");
        self.free -= 1;
        self.admitted.push((self.now, class));
    }

    fn lose(&mut self, item: u32) {
        self.waiting.retain(|(.., waiting)| *waiting != item);
        self.shed.push((self.now, self.classes[item as usize]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// P26, until more requests arrive in 100 ms than twice the bound of the queue.
    #[test]
    fn no_class_is_shed_while_a_lower_one_is_admitted(
        steps in steps(),
        max in prop_oneof![Just(200usize), Just(8), Just(2)],
        discipline in prop_oneof![Just(QueueDiscipline::Fifo), Just(QueueDiscipline::Codel), Just(QueueDiscipline::Lifo)],
    ) {
        let max_wait = Span::from_millis(200);
        let mut run = Run::new(QueueConfig { max, max_wait, discipline, ..QueueConfig::default() });
        for step in steps {
            if matches!(step, Step::Arrive(_)) && run.queue.len() == 2 * max {
                break;
            }
            run.step(step);
            prop_assert_eq!(run.queue.len(), run.waiting.len());
            prop_assert!(run.queue.len() <= 2 * max);
        }
        for (shed_at, shed) in &run.shed {
            let inverted = run.admitted.iter().find(|(admitted_at, admitted)| {
                let apart = admitted_at.since(*shed_at).plus(shed_at.since(*admitted_at));
                admitted < shed && apart < PRIORITY_WINDOW
            });
            prop_assert!(inverted.is_none(), "{:?} was admitted, {:?} shed at {:?}", inverted, shed, shed_at);
        }
    }
}
