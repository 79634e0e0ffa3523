/**
 * Event loops, sockets, TLS and host names: which thread reads a socket, which one writes to it, and how it closes.
 *
 * <p>This package uses Netty, {@code ledger} and {@code dev.rpcx.internal}. Of {@code dev.rpcx} it uses the endpoint,
 * which TLS checks, and the context, which {@link LoopThread} keeps for {@code call}. It must not know what a frame or
 * a call is: to a turn they are a {@code WriteTurn.Message} and a {@code ReadTurn.Reader}.
 *
 * <ul>
 *   <li>Event loops: {@link NettyVersion} refuses a Netty that is too old; {@link Platform} is the source of loops,
 *       time and random numbers, which a simulation replaces; {@link Loops} makes event loops and the channels that
 *       listen and connect, and decides whether they use epoll, NIO or memory; {@link SharedLoops} is the pool from
 *       which clients borrow loops; {@code LoopThread} is the thread of one loop, with what is kept per loop; {@link
 *       LoopTasks} is the task queue of one loop, and loses no task when the loop ends; {@link ThreadFactories} makes
 *       threads that inherit nothing, for event loops and for handlers.
 *   <li>Host names: {@link DnsAddresses} resolves the host of each new connection, on the loop that connects;
 *       {@link DnsNames} asks the name servers, for {@code DnsAddresses} and for {@code discovery}. The host that a
 *       server listens on is looked up by {@code Loops.bind}, which blocks.
 *   <li>TLS: {@link KeyPairs} checks for {@code Tls} that a key belongs to its certificate; {@link TlsEngine} puts TLS
 *       into the pipeline of a new connection, and gives it the name that the peer's certificate must have;
 *       {@link TlsRecords} stands before and behind the TLS engine, and bounds and charges the records.
 *   <li>Netty's epoll: {@link CloseWatch} stands between epoll and each socket, and delays the close of a socket until
 *       no thread uses it. It sends and receives for {@code WriteTurn} and {@code ReadTurn}, and a caller that reads
 *       waits in it. No other class relies on the internals of Netty's epoll transport.
 *   <li>Writing: {@link WriteTurn} is the right to write to a socket, and writes; {@link SocketQueue} observes the
 *       bytes in the channel's queue that the peer has not read, has a claim for them, and ends the connection if they
 *       are too many.
 *   <li>Reading: {@link ReadTurn} is the right to read, which a caller may have; {@link ReadingClock} stands
 *       still while this side does not read, so that the pause does not count against the peer.
 *   <li>The end: {@link TcpKeepAlive} makes the kernel find a host that is gone, on the classic wire; {@link HalfClose}
 *       closes a connection so that the bytes written last arrive, and no reset overtakes them.
 * </ul>
 *
 * <p><b>Who writes.</b> On the native wire, either the thread of a caller or of a handler writes, or the event loop. A
 * thread that finds its connection quiet ({@code ClientConnection.sendCall}, {@code SentReplies.send}) takes
 * {@code WriteTurn} and writes its small message itself. Otherwise {@code WireConnection} gathers messages on the event
 * loop, and writes them by {@code WriteTurn.writeHere}, or by the channel if other bytes wait before them. With TLS,
 * with NIO, within one process and on the classic wire the event loop alone writes, by the channel.
 *
 * <p><b>Who reads.</b> The event loop reads, or a caller that is alone on its connection and to which {@code ReadTurn}
 * has lent the socket. Only the event loop closes a socket.
 */
@NullMarked
package dev.rpcx.internal.io;

import org.jspecify.annotations.NullMarked;
