// A worker that only tells the time: timers of pages that nobody sees are slowed down, those of workers are not.

const REPEAT = 20_000;

setInterval(() => postMessage("tick"), REPEAT);
