package dev.rpcx.kubernetes;

import dev.rpcx.Endpoints;
import dev.rpcx.VisibleText;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.exc.StreamConstraintsException;
import tools.jackson.core.json.JsonFactory;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.MappingIterator;
import tools.jackson.databind.json.JsonMapper;

/**
 * Lists a service's slices, then reads the changes as they come; lists again when the server says that it has forgotten where the reader
 * was. Source: Kubernetes, <i>API Concepts</i>, efficient detection of changes.
 */
final class SliceWatch implements Endpoints.Watch, Runnable {
    /** Tokens of JSON of one answer: an endpoint has some fifty. */
    private static final long MAX_TOKENS = 500_000;

    /** Of one service so many slices are kept, with so many endpoints in all: a slice has a hundred of them. */
    private static final int MAX_SLICES = 1_024;

    private static final int MAX_ENDPOINTS = 65_536;

    /** Characters of a name of Kubernetes, which is that of a domain. */
    private static final int MAX_TEXT = 253;

    /** A tree takes up to 100 bytes for each token of two characters, so that bytes alone bound nothing. */
    private static final JsonMapper JSON = JsonMapper.builder(JsonFactory.builder()
                    .streamReadConstraints(StreamReadConstraints.builder()
                            .maxTokenCount(MAX_TOKENS)
                            .build())
                    .build())
            .build();

    /** After this the server ends a watch, and it is begun anew from where it was: so a connection that is dead is noticed. */
    private static final int WATCH_SECONDS = 60;

    private static final long ANSWER_MILLIS = 5_000;
    private static final long WATCH_MILLIS = (WATCH_SECONDS + 5) * 1000L;
    private static final long FIRST_PAUSE_MILLIS = 100;
    private static final long MOST_PAUSE_MILLIS = 2_000;

    /** A watch that ends earlier says nothing for its server. */
    private static final long LASTING_MILLIS = 1_000;

    /**
     * Changes that come sooner after a list that was told are told together: each list costs as much as all endpoints.
     */
    private static final long TOGETHER_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Characters of what the server says of an error. */
    private static final int MOST_TEXT = 200;

    /** Characters of what is said of an answer that cannot be read. */
    private static final int MOST_WHY = 500;

    private static final int GONE = 410;

    private final ApiServer server;
    private final String path;
    private final @Nullable String port;
    private final Endpoints.Listener listener;

    // guarded by this
    private final Map<String, Slice> slices = new LinkedHashMap<>();
    private int endpoints;
    private long toldNanos;
    private boolean isToBeTold;

    private @Nullable HttpClient client;
    private byte[] authorities = {};
    private final CountDownLatch closed = new CountDownLatch(1);

    /** Ends what is being read. */
    private volatile Runnable abort = () -> {};

    SliceWatch(ApiServer server, String namespace, String service, @Nullable String port, Endpoints.Listener listener) {
        this.server = server;
        this.path = "/apis/discovery.k8s.io/v1/namespaces/" + namespace + "/endpointslices?labelSelector="
                + encoded("kubernetes.io/service-name=" + service);
        this.port = port;
        this.listener = listener;
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    void start() {
        start(this);
    }

    private static void start(Runnable task) {
        Thread thread = new Thread(null, task, "rpcx-kubernetes", 0, false);
        thread.setContextClassLoader(SliceWatch.class.getClassLoader());
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void close() {
        closed.countDown();
        abort.run();
    }

    private boolean isClosed() {
        return closed.getCount() == 0;
    }

    @Override
    public void run() {
        // in a row: watches that ended at once, and whatever else failed
        int hasty = 0;
        try {
            while (!isClosed()) {
                try {
                    String version = list(client());
                    while (version != null && !isClosed()) {
                        long began = System.nanoTime();
                        version = watch(client(), version);
                        if (System.nanoTime() - began >= TimeUnit.MILLISECONDS.toNanos(LASTING_MILLIS)) {
                            hasty = 0;
                        } else {
                            hasty++;
                            hasty(hasty);
                        }
                    }
                } catch (Throwable e) {
                    // an Error too: a list of instances must not stand still for ever because the heap was full once
                    hasty++;
                    failed(e, hasty);
                }
            }
        } finally {
            end(client);
        }
    }

    /** A server, or something between, that ends each watch at once must not be stormed, with lists least of all. */
    private void hasty(int times) {
        if (times > 3) {
            tell(new IOException(server.base() + path + ": " + times + " watches in a row ended within "
                    + LASTING_MILLIS + " ms (expected: one that lasts)"));
        }
        pause(times);
    }

    /** The one before, unless other authorities are to be trusted than it trusts. */
    private HttpClient client() throws IOException {
        byte[] now = server.authorities();
        HttpClient before = client;
        if (before != null && Arrays.equals(now, authorities)) {
            return before;
        }
        HttpClient made = server.client(now);
        client = made;
        authorities = now;
        end(before);
        return made;
    }

    private void failed(Throwable why, int failures) {
        // what is kept of a server that says too much is not kept on
        clear();
        tell(why);
        pause(failures);
    }

    private void tell(Throwable why) {
        if (isClosed()) {
            return;
        }
        try {
            synchronized (this) {
                listener.failed(why);
            }
        } catch (Throwable e) {
            log(e);
        }
    }

    private static void log(Throwable failure) {
        try {
            System.getLogger(SliceWatch.class.getName())
                    .log(System.Logger.Level.WARNING, "a listener has failed", failure);
        } catch (Throwable unspeakable) {
            // a log that fails too, as where the heap is full, does not end the watch
        }
    }

    /** Ends its threads; before Java 21 they end when it is collected. */
    private static void end(@Nullable HttpClient client) {
        if (client instanceof AutoCloseable threads) {
            boolean interrupted = Thread.interrupted();
            try {
                // interrupted, it ends what is under way instead of waiting for it
                Thread.currentThread().interrupt();
                threads.close();
            } catch (Exception e) {
                System.getLogger(SliceWatch.class.getName()).log(System.Logger.Level.DEBUG, "not closed", e);
            } finally {
                if (Thread.interrupted() && interrupted) {
                    Thread.currentThread().interrupt();
                }
            }
        }
    }

    private void pause(int failures) {
        long millis = Math.min(MOST_PAUSE_MILLIS, FIRST_PAUSE_MILLIS << Math.min(failures - 1, 10));
        try {
            boolean isOver =
                    closed.await(ThreadLocalRandom.current().nextLong(millis / 2, millis + 1), TimeUnit.MILLISECONDS);
            assert !isOver || isClosed();
        } catch (InterruptedException e) {
            closed.countDown();
        }
    }

    /** @return where the list stands */
    private String list(HttpClient client) throws IOException {
        HttpResponse<InputStream> answer = ask(client, "", HttpResponse.BodyHandlers.ofInputStream());
        JsonNode list;
        try (InputStream in = limited(answer.body(), ANSWER_MILLIS)) {
            expectOk(answer.statusCode());
            list = JSON.readTree(in);
        } catch (JacksonException e) {
            throw broken("list", e);
        }
        fill(list.path("items"));
        return version(list);
    }

    private synchronized void fill(JsonNode items) throws IOException {
        clear();
        for (JsonNode item : items) {
            put(item);
        }
        found();
    }

    private synchronized void found() {
        isToBeTold = false;
        toldNanos = System.nanoTime();
        listener.found(Slice.all(slices.values()));
    }

    /** At once, or with what comes until the time for the next list. */
    private synchronized void changed() {
        long wait = toldNanos + TOGETHER_NANOS - System.nanoTime();
        if (wait <= 0) {
            found();
        } else if (!isToBeTold) {
            isToBeTold = true;
            later(this::foundLater, wait);
        }
    }

    /** On a thread of its own: those of the JDK's common pool may all be waiting for something else. */
    private static void later(Runnable task, long nanos) {
        CompletableFuture.delayedExecutor(nanos, TimeUnit.NANOSECONDS, SliceWatch::startOrLater)
                .execute(task);
    }

    private static void startOrLater(Runnable task) {
        try {
            start(task);
        } catch (Throwable e) {
            // no thread to be had: nobody else tells what has changed
            later(task, TOGETHER_NANOS);
        }
    }

    private synchronized void foundLater() {
        if (!isToBeTold || isClosed()) {
            return;
        }
        long wait = toldNanos + TOGETHER_NANOS - System.nanoTime();
        if (wait > 0) {
            // this one comes late, and the reader has told meanwhile
            later(this::foundLater, wait);
            return;
        }
        try {
            found();
        } catch (Throwable e) {
            // as where the reader tells: what is being read ends, and the list is read again
            abort.run();
            log(e);
        }
    }

    /**
     * Watches follow each other without a list between them, so their sizes do not bound what is kept.
     *
     * @return whether the slice is another one now
     */
    private synchronized boolean put(JsonNode object) throws IOException {
        Slice put = Slice.of(object, port);
        Slice before = slices.put(name(object), put);
        endpoints += put.ready().size() - (before == null ? 0 : before.ready().size());
        if (slices.size() > MAX_SLICES || endpoints > MAX_ENDPOINTS) {
            throw new IOException(server.base() + path + ": more than " + MAX_SLICES + " slices or " + MAX_ENDPOINTS
                    + " endpoints of one service");
        }
        return !put.equals(before);
    }

    /** @return whether it was there */
    private synchronized boolean remove(JsonNode object) throws IOException {
        Slice removed = slices.remove(name(object));
        endpoints -= removed == null ? 0 : removed.ready().size();
        return removed != null;
    }

    private synchronized void clear() {
        slices.clear();
        endpoints = 0;
        isToBeTold = false;
    }

    /** @return where the watch has got to; null if the list has to be read again */
    private @Nullable String watch(HttpClient client, String from) throws IOException {
        HttpResponse<InputStream> answer = ask(
                client,
                "&watch=1&allowWatchBookmarks=true&timeoutSeconds=" + WATCH_SECONDS + "&resourceVersion="
                        + encoded(from),
                HttpResponse.BodyHandlers.ofInputStream());
        try (InputStream in = limited(answer.body(), WATCH_MILLIS)) {
            if (answer.statusCode() == GONE) {
                return null;
            }
            expectOk(answer.statusCode());
            return isClosed() ? null : read(JSON.readerFor(JsonNode.class).readValues(in), from);
        } catch (JacksonException e) {
            // which wraps what reading throws: a connection that breaks is not a watch that has ended
            throw broken("watch", e);
        }
    }

    /** Ends after this time, when the watch is closed, or where it is too long. To be closed. */
    private InputStream limited(InputStream body, long millis) {
        CompletableFuture<Void> timer = new CompletableFuture<>();
        abort = () -> end(body);
        if (isClosed()) {
            end(body);
        }
        timer.orTimeout(millis, TimeUnit.MILLISECONDS).whenComplete((over, late) -> {
            if (late != null) {
                end(body);
            }
        });
        return new LimitedStream(body) {
            @Override
            public void close() throws IOException {
                timer.complete(null);
                super.close();
            }
        };
    }

    private static void end(InputStream in) {
        try {
            in.close();
        } catch (IOException e) {
            // its end is all that was wanted
        }
    }

    private @Nullable String read(MappingIterator<JsonNode> events, String from) throws IOException {
        String version = from;
        while (!isClosed() && events.hasNextValue()) {
            JsonNode event = events.nextValue();
            JsonNode object = event.path("object");
            boolean isChange;
            switch (event.path("type").asString("")) {
                case "ADDED", "MODIFIED" -> isChange = put(object);
                case "DELETED" -> isChange = remove(object);
                case "BOOKMARK" -> {
                    version = version(object);
                    continue;
                }
                case "ERROR" -> {
                    if (object.path("code").asInt(0) == GONE) {
                        return null;
                    }
                    throw new IOException("the watch ended: "
                            + VisibleText.line(object.path("message").asString(""), MOST_TEXT));
                }
                default -> {
                    // a type of a later version
                    continue;
                }
            }
            version = version(object);
            if (isChange) {
                changed();
            }
        }
        return version;
    }

    private static IOException broken(String what, JacksonException why) {
        return why instanceof StreamConstraintsException
                ? new IOException(
                        "the " + what + " has more than " + MAX_TOKENS + " tokens of JSON, or one that is too long")
                : failure("the " + what + " broke off", why.getOriginalMessage());
    }

    /** Words that may be those of whoever answers: their line has no cause, which would have them as they are. */
    private static IOException failure(String of, String why) {
        return new IOException(of + ": " + VisibleText.line(why, MOST_WHY));
    }

    private <T> HttpResponse<T> ask(HttpClient client, String more, HttpResponse.BodyHandler<T> handler)
            throws IOException {
        CompletableFuture<HttpResponse<T>> asked = client.sendAsync(server.request(path + more), handler);
        abort = () -> asked.cancel(true);
        if (isClosed()) {
            asked.cancel(true);
        }
        try {
            return asked.get(ANSWER_MILLIS, TimeUnit.MILLISECONDS);
        } catch (ExecutionException | CancellationException e) {
            Throwable why = e.getCause() == null ? e : e.getCause();
            throw failure(server.base().toString(), why.toString());
        } catch (TimeoutException e) {
            asked.cancel(true);
            throw new IOException(server.base() + ": no answer within " + ANSWER_MILLIS + " ms", e);
        } catch (InterruptedException e) {
            closed.countDown();
            throw new IOException("interrupted", e);
        }
    }

    private void expectOk(int code) throws IOException {
        if (code != HttpURLConnection.HTTP_OK) {
            throw new IOException(server.base() + path + ": " + code
                    + (code == HttpURLConnection.HTTP_FORBIDDEN || code == HttpURLConnection.HTTP_UNAUTHORIZED
                            ? " (expected: an account that may list and watch endpointslices)"
                            : ""));
        }
    }

    private static String name(JsonNode object) throws IOException {
        return metadata(object, "name");
    }

    private static String version(JsonNode object) throws IOException {
        return metadata(object, "resourceVersion");
    }

    /** What is kept of each slice, or asked with, has to be short, as an answer may have megabytes of it. */
    private static String metadata(JsonNode object, String field) throws IOException {
        String text = object.path("metadata").path(field).asString("");
        if (text.length() > MAX_TEXT) {
            throw new IOException(
                    "a " + field + " of " + text.length() + " characters (expected: at most " + MAX_TEXT + ")");
        }
        return text;
    }
}
