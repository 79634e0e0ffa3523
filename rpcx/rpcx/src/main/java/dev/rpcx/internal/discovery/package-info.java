/**
 * Names the instances of a service to a client: from a fixed list, from DNS, or from a registry of the user.
 *
 * <p>This package uses {@code io} for event loops and name servers, {@code dev.rpcx.internal}, and {@code Endpoint},
 * {@code Endpoints} and {@code VisibleText} of {@code dev.rpcx}. This package must not know who listens. The listener
 * is {@code ClientCluster} of {@code client}, which connects and chooses. {@code server} does not use this package.
 * Other registries implement {@code Endpoints} in modules of their own, such as {@code rpcx-zookeeper}.
 *
 * <ul>
 *   <li>One watch for many clients: {@link SharedWatch} keeps one watch for all clients of the process whose endpoints
 *       are equal, and passes on its news.
 *   <li>Where instances are: {@link EndpointsFixed} is a list that never changes; {@link EndpointsDns} starts a
 *       {@link DnsWatch}, which asks DNS again and again ({@code look}: after each refresh time, and after at most 2 s
 *       if nothing was found or the last question failed); {@link DnsQuestion} is the question, for the addresses of a
 *       host or for SRV records, and reads the instances from the answer.
 * </ul>
 *
 * <p>A client has names resolved at two places: here, if a name stands for the instances of a service, and by
 * {@code DnsAddresses} of {@code io}, if the client connects to one instance whose host is a name. Both ask by
 * {@code DnsNames} of {@code io}.
 *
 * <p>Threads: {@code DnsWatch} runs on an event loop of the pool that clients share. A user's {@code Endpoints} may
 * call its listener on any thread.
 */
@NullMarked
package dev.rpcx.internal.discovery;

import org.jspecify.annotations.NullMarked;
