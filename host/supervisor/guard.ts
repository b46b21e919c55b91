/** Arguments of `/bin/sh` for the guard of a driver that is started from the runtime folder `path`. */
export function guardArguments(path: string): string[] {
  return ['-c', SCRIPT, 'urutau-guard', path];
}

/** What the guard is told on its stdin once the driver runs. */
export function guardIsTold(pgid: number): string {
  return `${pgid}\n`;
}

/**
 * Waits for the end of its stdin, whose other end the host alone holds: that is the host's end, however it came. Then it
 * ends all that is left of the driver by SIGKILL: its group, and on Linux whatever else was started from the driver's
 * runtime folder, which the environment of every descendant names, also of one in a session of its own.
 *
 * A group's number is not given away while one process of it lives. It is taken for another's only where a leader of that
 * number lives that began at another time. A process that was just forked carries the name only after its exec, so two
 * looks a second apart must find nothing. What even SIGKILL does not end is left to the system after a while.
 */
const SCRIPT = `
trap '' HUP INT TERM
folder=$1
began() {
  if [ -r /proc/self/stat ]; then
    stat=$(cat "/proc/$1/stat") && set -- \${stat##*) } && echo "\${20}"
  else
    ps -o lstart= -p "$1"
  fi
}
read -r leader
[ -n "$leader" ] && was=$(began "$leader")
while read -r _; do :; done
clear=0
looks=0
while [ $clear -lt 2 ] && [ $looks -lt 12 ]; do
  [ $looks -gt 0 ] && sleep 1
  looks=$((looks + 1))
  clear=$((clear + 1))
  if [ -n "$leader" ]; then
    now=$(began "$leader")
    if [ -z "$now" ] || [ "$now" = "$was" ]; then kill -s KILL -- "-$leader" && clear=0; fi
  fi
  for file in $(grep -lsF "=$folder/" /proc/[0-9]*/environ); do
    pid=\${file#/proc/}
    kill -s KILL "\${pid%/environ}" && clear=0
  done
done
rm -rf -- "$folder"
`;
