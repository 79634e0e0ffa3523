/**
 * A log line for each call, as the papers' services wrote them: ECS JSON through Log4j. This module is on a service's
 * class path only in a run that is observed.
 *
 * <p>Starting point: {@link dev.parley.observed.EcsCallLogs}. Threads: callers write into one buffer, one at a time;
 * the caller that fills it writes it to the file. Never imports a transport or the service.
 */
@NullMarked
package dev.parley.observed;

import org.jspecify.annotations.NullMarked;
