// Owns: giving processes a share of a core each, with a control group of Linux. Two processes and the load need more cores than
// a small machine has: with a third of a core each, they show what a further process adds where it has its own core.
// Does not: leave a group behind.

import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';

/** Microseconds: short, so that a process that has used up its share waits for a few milliseconds only. */
const PERIOD = 10_000;

/** The groups of version 1 or 2 that limit processor time. */
const V1 = '/sys/fs/cgroup/cpu';
const V2 = '/sys/fs/cgroup';

export interface CpuShares {
  /** Frees the processes; the groups can then be removed. */
  end(): void;
}

/**
 * @param pids each gets as much.
 * @param share of a core.
 * @throws Error without the right to make control groups: only root has it.
 */
export function shareCpu(pids: readonly number[], share: number): CpuShares {
  const quota = Math.round(PERIOD * share);
  const isV1 = existsSync(`${V1}/cpu.cfs_quota_us`);
  const root = isV1 ? V1 : V2;
  if (!isV1) writeFileSync(`${V2}/cgroup.subtree_control`, '+cpu');
  const groups = pids.map((pid) => {
    const group = `${root}/book-catalogue-bench-${pid}`;
    mkdirSync(group);
    if (isV1) {
      writeFileSync(`${group}/cpu.cfs_period_us`, `${PERIOD}`);
      writeFileSync(`${group}/cpu.cfs_quota_us`, `${quota}`);
    } else {
      writeFileSync(`${group}/cpu.max`, `${quota} ${PERIOD}`);
    }
    writeFileSync(`${group}/cgroup.procs`, `${pid}`);
    return group;
  });
  return {
    end() {
      for (const pid of pids) writeFileSync(`${root}/cgroup.procs`, `${pid}`);
      for (const group of groups) rmdirSync(group);
    },
  };
}
