//: what: a state machine with labelled tuples, as const, assertion functions, never and overloads
//: stdout: idle > running > paused > running > done; refused stop in idle; ticks 5; parsed 3,three
const transitions = {
  idle: { start: "running" },
  running: { pause: "paused", stop: "done" },
  paused: { resume: "running", stop: "done" },
  done: {},
} as const;

type State = keyof typeof transitions;
type Action = { [S in State]: keyof (typeof transitions)[S] }[State];
type Step = [from: State, action: Action, to: State];

function assertThat(condition: unknown, message = "assertion failed"): asserts condition {
  if (!condition) throw new TypeError(message);
}

function next(state: State, action: Action): State {
  const to = (transitions[state] as Partial<Record<Action, State>>)[action];
  assertThat(to, `refused ${action} in ${state}`);
  return to;
}

function ticks(state: State): number {
  switch (state) {
    case "idle":
    case "done":
      return 0;
    case "running":
      return 2;
    case "paused":
      return 1;
    default: {
      const impossible: never = state;
      return impossible;
    }
  }
}

function parse(value: string): number;
function parse(value: number): string;
function parse(value: string | number): string | number {
  return typeof value === "string" ? Number.parseInt(value, 10) : ["zero", "one", "two", "three"][value]!;
}

const history: Step[] = [];
let state = "idle" as State;
for (const action of ["start", "pause", "resume", "stop"] as const) {
  const to = next(state, action);
  history.push([state, action, to]);
  state = to;
}
let refused = "";
try {
  next("idle", "stop");
} catch (error: unknown) {
  assertThat(error instanceof TypeError);
  refused = error.message;
}
const path: readonly State[] = [history[0]![0], ...history.map(([, , to]) => to)];
const total = path.reduce<number>((sum, one) => sum + ticks(one), 0);
console.log(`${path.join(" > ")}; ${refused}; ticks ${total}; parsed ${parse("3x")},${parse(3)}`);
