package dev.parley.transport.resth2;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.transport.restcalls.RestCall;
import dev.parley.transport.restcalls.RestServer;
import java.io.IOException;
import java.net.SocketAddress;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.eclipse.jetty.client.BytesRequestContent;
import org.eclipse.jetty.client.CompletableResponseListener;
import org.eclipse.jetty.client.ContentResponse;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.client.RetryableRequestException;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpMethod;
import org.eclipse.jetty.io.ClientConnector;
import org.eclipse.jetty.util.IO;

/** One {@link HttpClient} with its connections to one service. */
final class JettyNeighbour implements Neighbour {
    private final HttpClient client;
    private final Location to;
    private final Map<String, RestCall<?, ?>> calls;
    private final Channels channels = new Channels();
    private volatile boolean closed;

    JettyNeighbour(Contract contract, Location to, HttpVersion version) {
        this.to = to;
        this.calls = RestCall.of(contract, to);
        this.client = version.client();
        client.getClientConnector().addEventListener(channels);
        try {
            client.start();
            // a 401 is an answer here; Jetty's handler of it fails where no challenge comes with it
            client.getProtocolHandlers().clear();
        } catch (Exception e) {
            throw new CallException(Code.UNAVAILABLE, "the HTTP client does not start: " + e, e);
        }
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        try {
            return send(operation, request, timeout).get();
        } catch (ExecutionException e) {
            throw CallException.of(e.getCause() == null ? e : e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CallException(Code.UNAVAILABLE, "interrupted while waiting for " + to, e);
        }
    }

    @Override
    public <Q extends Record, R extends Record> CompletableFuture<R> send(
            Operation<Q, R> operation, Q request, Duration timeout) {
        RestCall<Q, R> call;
        Request sent;
        CompletableFuture<ContentResponse> exchange;
        try {
            call = RestCall.named(calls, operation, to);
            sent = request(call, request);
            exchange = new CompletableResponseListener(sent, (int) RestServer.MAX_BODY_BYTES).send();
        } catch (RuntimeException e) {
            return CompletableFuture.failedFuture(failed(e, timeout));
        }
        return exchange.orTimeout(timeout.toNanos(), TimeUnit.NANOSECONDS).handle((response, failure) -> {
            if (failure != null) {
                // does nothing to a request that has ended
                sent.abort(failure);
                throw failed(failure, timeout);
            }
            return call.reply(
                    response.getStatus(), name -> response.getHeaders().get(name), response.getContent());
        });
    }

    private <Q extends Record> Request request(RestCall<Q, ?> call, Q value) {
        RestCall.Sent sent = call.sent(value);
        Request request =
                client.newRequest(sent.uri()).headers(headers -> headers.put(HttpHeader.ACCEPT, call.accept()));
        byte[] body = sent.bytes();
        return body == null
                ? request.method(HttpMethod.GET)
                : request.method(HttpMethod.POST).body(new BytesRequestContent(sent.mediaType(), body));
    }

    private CallException failed(Throwable thrown, Duration timeout) {
        Throwable t = thrown;
        while ((t instanceof CompletionException || t instanceof ExecutionException) && t.getCause() != null) {
            t = t.getCause();
        }
        if (closed) {
            return new CallException(Code.UNAVAILABLE, "the client of " + to + " is closed", t);
        }
        return switch (t) {
            case CallException e -> e;
            case TimeoutException e ->
                new CallException(
                        Code.DEADLINE_EXCEEDED, "no reply from " + to + " within " + timeout.toMillis() + " ms", e);
            case IOException e ->
                new CallException(
                        Code.UNAVAILABLE,
                        to + ": " + (e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage()),
                        e);
            // the server has ended its connection and says that it has not taken this request: GOAWAY, RFC 9113,
            // section 6.8
            case RetryableRequestException e ->
                new CallException(Code.UNAVAILABLE, to + ": the server has left before the request", e);
            default -> new CallException(Code.PROTOCOL, to + ": " + t, t);
        };
    }

    @Override
    public long payloadBytes(Record message) {
        return RestCall.payloadBytes(message);
    }

    @Override
    public void close() {
        closed = true;
        try {
            client.stop();
        } catch (Exception e) {
            System.getLogger(JettyNeighbour.class.getName())
                    .log(System.Logger.Level.DEBUG, "the HTTP client of " + to + " did not stop as it should", e);
        } finally {
            channels.close();
        }
    }

    /**
     * All that the client has opened. As it stops, it forgets a connection that is not established yet, which then
     * stays open.
     */
    private static final class Channels implements ClientConnector.ConnectListener, AutoCloseable {
        private final Set<SocketChannel> open = ConcurrentHashMap.newKeySet();
        private volatile boolean isClosed;

        @Override
        public void onConnectBegin(SocketChannel channel, SocketAddress to) {
            open.removeIf(c -> !c.isOpen());
            open.add(channel);
            if (isClosed) {
                close();
            }
        }

        @Override
        public void close() {
            isClosed = true;
            open.forEach(IO::close);
        }
    }
}
