// The documents of the admin port that the page reads. What is not known, or not used, is missing.

export interface Quantiles {
  count: number;
  mean_us: number;
  p50_us: number;
  p99_us: number;
  p999_us: number;
}

export interface Latency {
  "10s"?: Quantiles;
  "1m"?: Quantiles;
}

export interface Listener {
  number: number;
  protocol: string;
  clients: number;
  rate?: number;
  errors?: number;
  latency?: Latency;
}

export interface Pool {
  protocol?: string;
  up: number;
  members: number;
  rate?: number;
  latency?: Latency;
  waits?: { held?: Latency; parked?: number; queued?: Latency; unsent_bytes?: number };
}

export interface Copy {
  state: string;
  since_ms?: number;
  why?: string;
  missed: number | string;
  departed?: boolean;
}

export interface Member {
  pool: string;
  name: string;
  address: string;
  resolves_to?: string;
  state: string;
  since_ms?: number;
  why?: string;
  rate?: number;
  errors?: number;
  failures: number;
  mean_us?: number;
  lanes: number;
  waiting: number;
  missed_writes?: number | string;
  distance: string;
  distance_source?: string;
  numa_nodes?: number[];
  zone?: string | null;
  node?: string;
  weight: number;
  ejections: number;
  fail_open?: boolean;
  drains?: boolean;
  role?: string;
  role_why?: string;
  copy?: Copy;
}

export interface Peer {
  name: string;
  address: string;
  since_view: number;
  decides: boolean;
  copies: string[];
  round_trip_ms?: number | null;
  /** Missing: an older program. */
  round_trips_ms?: Record<string, number>;
  unreachable?: string | null;
  complains_of: string[];
  heard_seconds_ago?: number | null;
}

export interface Fleet {
  name: string;
  fleet?: string | null;
  view: number;
  why: string;
  term: number;
  leader?: string | null;
  is_leader: boolean;
  voters: Record<string, string>;
  lease_seconds: number;
  waits_for: string;
  peers: Peer[];
  alerts: string[];
  candidates: string[];
  removed: [string, string][];
  commits: number;
  commit_seconds: number;
}

export interface NearRule {
  name: string;
  keys: string;
  commands: string[];
  on: boolean;
  settings: Record<string, string>;
  configured: Record<string, string>;
  kept: string[];
  entries: number;
  bytes: number;
  hits: number;
  stale_hits: number;
  negative_hits: number;
  misses: number;
  joined: number;
  fills: number;
  stored: number;
  refused: Record<string, number>;
  dropped: Record<string, number>;
  age_at_hit: number;
  saved: number;
}

export interface Near {
  memory: number;
  bytes: number;
  keys: number;
  settings_file?: string | null;
  rules: NearRule[];
}

export interface NearKey {
  rule: string;
  key: string;
  bytes: number;
  age: number;
  hits: number;
}

export interface SlowStep {
  waited_for: string;
  from_us: number;
  us: number;
  route?: string;
  pool?: string;
  server?: string;
  outcome?: string;
  why?: string;
}

export interface SlowRequest {
  number: number;
  at_ms: number;
  listener: string;
  client?: string;
  command: string;
  class: string;
  key?: string;
  statement?: string;
  outcome: string;
  us: number;
  weight: number;
  steps: SlowStep[];
  more_steps?: boolean;
}

export interface SlowRequests {
  over_us?: number;
  keep?: number;
  keys?: string;
  count: number;
  missed: number;
  requests: SlowRequest[];
}

export interface MysqlMember {
  name: string;
  address: string;
  role?: string;
  role_since?: number;
  role_why?: string;
  is_up: boolean;
  why?: string;
  drains: boolean;
  connections: number;
  in_use: number;
  idle: number;
  queued: number;
  waiting: number;
  position?: number;
  unapplied?: number;
}

export interface MysqlPool {
  name: string;
  has_roles: boolean;
  writer?: string | null;
  members: MysqlMember[];
}

export interface MysqlSession {
  worker: number;
  number: number;
  user: string;
  client?: string | null;
  schema: string;
  state: string;
  connection?: { pool: string; address: string; seconds: number; runs: boolean } | null;
}

export interface MysqlSessions {
  workers: Record<string, number>[];
  sessions: MysqlSession[];
  left_out: number;
}

/** CPUs as the kernel lists them, as in `0-3,8`. */
type CpuList = string;

export interface MachineNode {
  id: number;
  sockets: number[];
  cpus: CpuList;
  caches: CpuList[];
  cores: CpuList[];
}

export interface MachineContainer {
  namespace: string;
  pod: string;
  name: string;
  nodes: number[];
  cpus?: CpuList;
  own?: CpuList;
}

export interface Machine {
  nodes: MachineNode[];
  containers: MachineContainer[];
  left_out: number;
}

export interface History {
  every_ms: number;
  until_ms: number;
  requests: (number | null)[];
  hit_ratio: (number | null)[];
  p99_us: (number | null)[];
  errors: (number | null)[];
  clients: (number | null)[];
  rss_bytes: (number | null)[];
  descriptors: (number | null)[];
}

export interface HotKey {
  key: string;
  rate: number;
  share: number;
}

/** What /watch tells. */
export interface Facts {
  version: number;
  process: {
    id: string;
    program: string;
    host: string;
    node?: string;
    started_ms: number;
    now_ms: number;
    io: string;
    workers: number;
    cores?: number;
    rss_bytes?: number;
    descriptors: { open?: number; most?: number };
    buffers?: { bytes: number; most: number };
  };
  health: { state: string; sentence: string };
  configuration: {
    version: string;
    changed_ms: number;
    attempted_ms: number;
    refused?: string;
    reloads: number;
    failures: number;
  };
  rates: Record<string, number>;
  clients: { open: number; most: number; slow_readers: number; unread_bytes: number; unread_us: number };
  latency?: Latency;
  listeners: Record<string, Listener>;
  pools: Record<string, Pool>;
  members: Record<string, Member>;
  embedded?: { items: number; bytes: number; limit_bytes: number };
  fleet?: Fleet;
  near?: Near;
  slow?: { over_us: number; count: number };
  mysql?: { pools: MysqlPool[] };
  agent?: {
    is_up: boolean;
    containers?: number;
    located?: { numa_node: number; socket: number; host: number };
    machine?: Machine;
  };
  hot_keys?: Record<string, HotKey[]>;
  edges?: Record<string, number>;
  history?: History;
}

/** An event of /events. */
export interface Event {
  seq: number;
  at_ms: number;
  level: string;
  kind: string;
  subject: string;
  before?: string;
  after?: string;
  why?: string;
  text: string;
}

export interface TreeNode {
  id: number;
  /** The name of the route, or `member`, `embedded`, `null` or `error`. */
  handle: string;
  children: number[];
  pool?: string;
  member?: string;
}

export interface Tree {
  configuration: string;
  listeners: { address: string; number: number; protocol: string; root: number }[];
  nodes: TreeNode[];
}

export interface Explanation {
  nodes: number[];
  text: string;
  steps: { node: number; depth: number; text: string }[];
}
