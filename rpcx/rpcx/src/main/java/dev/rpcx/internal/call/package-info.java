/**
 * What a call is on either side: the form of its method, its context, its interceptors, its future, its streams, and
 * the token that it carries.
 *
 * <p>This package uses the rooms up to {@code wire}, and {@code dev.rpcx.schema} and {@code codec} for the form of a
 * method. It must not know how a client finds a connection or how a server runs a handler: what they do differently
 * stands behind interfaces here, such as {@code HandledCall} and {@code StreamReceiver.Peer}.
 *
 * <ul>
 *   <li>The form of a method, found once at start: {@link PublishedMethod} finds the methods that are called from
 *       another process, and their names; {@link Names} checks names; {@link Streams} says which methods take or return
 *       a stream, and adds and reads credit; {@link MethodShape} is the form of a method in 32 bits, which both sides
 *       compare; {@link ClassicParameter} is a parameter as the classic wire carries it; {@link DeclaredErrors} are the
 *       exceptions that a method declares and that arrive as themselves: it makes a detail of an error of one of them,
 *       and one of them of a detail.
 *   <li>Time and caller: {@link CurrentCall} says which context a thread has; {@link TimedContext} has the deadline,
 *       the metadata and the caller, and computes the deadline of a call that is made in this context.
 *   <li>Interceptors: {@link CallInvocation} is a call on its way through them; {@link Chain} composes them, and runs
 *       each step; {@link CallGate} knows whether those of a client have let the call be sent; {@link HandledCall} is a
 *       call at a server: it has what {@code Chain} needs for a step, and what an interceptor learns from RPCX alone,
 *       such as the age of the call. Interceptors know no size of a message: at a client they run before the message is
 *       encoded.
 *   <li>Streams: {@link StreamSender} sends the items of a publisher, no more than the peer has given credit for;
 *       {@link StreamReceiver} hands incoming items to a subscriber, and gives the peer credit for what the subscriber
 *       requests; {@link SerialExecutor} runs the signals of one stream in order; {@link StreamEndListener} is a stream
 *       that is notified when its server ends it; {@link StreamErrors} makes the errors of streams;
 *       {@link IteratorPublisher} and {@link QueueIterator} make the publishers of {@code Publishers}.
 *   <li>Results that come later: {@link BoundFuture} runs its dependents in the context in which they were attached;
 *       {@link CallFuture} is what a proxy returns, and a cancel of it also cancels the call.
 *   <li>Tokens, for the interceptors of {@code Tokens}: {@link Token} is a signed token's content and its bytes;
 *       {@link UsedTokens} remembers which ones have been used.
 * </ul>
 *
 * <p>Credit is checked on both ends: {@code StreamReceiver.onItem} ends the connection of a peer that sends an item
 * without credit, and {@code StreamSender} asks its publisher for no more items than it has credit. A credit frame is
 * read by {@code Streams.credit}. {@code StreamReceiver.request} gives credit at once, for each request of the
 * subscriber; {@code Streams.accumulateCredit} adds up what waits for a frame.
 *
 * <p>The only threads of this room are those of {@code IteratorPublisher}, which read items that may have to be waited
 * for. They are virtual threads, or daemons with the name {@code rpcx-items}. Signals of a stream run on the
 * connection's event loop, or on the threads that run the handlers of the method; the dependents of a future run on the
 * thread that completes it, mostly an event loop.
 */
@NullMarked
package dev.rpcx.internal.call;

import org.jspecify.annotations.NullMarked;
