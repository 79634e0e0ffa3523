/**
 * A log line a call, as the papers' services wrote them: ECS JSON through Log4j. On a service's class path only in a run that is observed.
 *
 * <p>Starting point: {@link dev.parley.observed.EcsCallLogs}. Threads: the callers' write into a buffer, the file is theirs in turn. Never
 * imports a transport or the service.
 */
@NullMarked
package dev.parley.observed;

import org.jspecify.annotations.NullMarked;
