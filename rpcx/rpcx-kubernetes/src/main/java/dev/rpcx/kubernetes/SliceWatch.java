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
 * Watches a service's slices: lists them, then reads the changes as they come. Lists them again after a failure, or if
 * the server says that it no longer has the version from which the watch would continue. Source: Kubernetes,
 * <i>API Concepts</i>, efficient detection of changes.
 */
final class SliceWatch implements Endpoints.Watch, Runnable {
    /** Max tokens of JSON in one answer. An endpoint has about fifty. */
    private static final long MAX_TOKENS = 500_000;

    /**
     * Max slices that are kept of one service; {@code MAX_ENDPOINTS} limits the ready endpoints in all of them
     * together. A slice has a hundred endpoints.
     */
    private static final int MAX_SLICES = 1_024;

    private static final int MAX_ENDPOINTS = 65_536;

    /** Max characters of a name in Kubernetes, which is a domain name, and of a resource version. */
    private static final int MAX_NAME = 253;

    /**
     * A tree takes up to 100 bytes for each token of two characters, so a limit of an answer's bytes alone would be no
     * useful bound of the memory. The number of tokens is therefore limited too.
     */
    private static final JsonMapper JSON = JsonMapper.builder(JsonFactory.builder()
                    .streamReadConstraints(StreamReadConstraints.builder()
                            .maxTokenCount(MAX_TOKENS)
                            .build())
                    .build())
            .build();

    /**
     * Time after which the server ends a watch, and the next one continues where it stopped. A connection is known to
     * be dead if a watch on it does not end in time.
     */
    private static final int WATCH_SECONDS = 60;

    private static final long MAX_ANSWER_MILLIS = 5_000;
    private static final long MAX_WATCH_MILLIS = (WATCH_SECONDS + 5) * 1000L;
    private static final long FIRST_PAUSE_MILLIS = 100;
    private static final long MAX_PAUSE_MILLIS = 2_000;

    /** Min time that a watch has to last. One that ends earlier does not show that the server works. */
    private static final long MIN_WATCH_MILLIS = 1_000;

    /**
     * Min time between two lists that the listener gets because of changes. Changes that come sooner are passed on
     * together, since a list has all endpoints, however few of them have changed.
     */
    private static final long MIN_LIST_INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Max characters of the server's own text in an error. */
    private static final int MAX_TEXT = 200;

    /** Max characters of the reason in an error, such as why an answer cannot be read. */
    private static final int MAX_WHY = 500;

    private static final int GONE = 410;

    private final ApiServer server;
    private final String path;
    private final @Nullable String port;
    private final Endpoints.Listener listener;

    // The lock of this object guards the following four fields. The watching thread uses them, and so does each thread
    // that passes a list on later.
    private final Map<String, Slice> slices = new LinkedHashMap<>();
    private int endpoints;
    private long passedOnNanos;
    private boolean isListDue;

    // Only the watching thread uses the following two fields.
    private @Nullable HttpClient client;
    private byte[] authorities = {};

    /** Opened by any thread that closes this watch, or by the watching thread if it is interrupted. */
    private final CountDownLatch closed = new CountDownLatch(1);

    /**
     * Ends the open request or the answer that is being read. The watching thread writes this field. The thread
     * that closes this watch, and a thread that passes a list on later, read it.
     */
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
        // This thread opens "closed" before it reads "abort". The watching thread writes "abort" before it looks at
        // "closed". So at least one of them ends the request or the answer, which otherwise could go on until its time
        // is over.
        closed.countDown();
        abort.run();
    }

    private boolean isClosed() {
        return closed.getCount() == 0;
    }

    @Override
    public void run() {
        // This counts the watches that ended at once and all other failures, in a row.
        int failures = 0;
        try {
            while (!isClosed()) {
                try {
                    String version = list(client());
                    while (version != null && !isClosed()) {
                        long began = System.nanoTime();
                        version = watch(client(), version);
                        if (System.nanoTime() - began >= TimeUnit.MILLISECONDS.toNanos(MIN_WATCH_MILLIS)) {
                            failures = 0;
                        } else {
                            failures++;
                            pauseAfterShortWatch(failures);
                        }
                    }
                } catch (Throwable e) {
                    // This catches an Error too: the list of instances must not stay as it is for ever because the heap
                    // was full once.
                    failures++;
                    failed(e, failures);
                }
            }
        } finally {
            end(client);
        }
    }

    /**
     * Pauses after a watch that ended at once. A server that ends each watch at once, or something between it and this
     * process that does, must not be flooded with requests, least of all with lists. From the fourth time in a row the
     * listener gets an error.
     */
    private void pauseAfterShortWatch(int times) {
        if (times > 3) {
            report(new IOException(server.base() + path + ": " + times + " watches in a row ended within "
                    + MIN_WATCH_MILLIS + " ms (expected: one that lasts)"));
        }
        pause(times);
    }

    /** Returns the client made before, or a new one if the authorities that it has to trust have changed. */
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
        // What was kept may come from a server that sends too much, so it is not kept any longer.
        clear();
        report(why);
        pause(failures);
    }

    private void report(Throwable why) {
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
                    .log(System.Logger.Level.WARNING, "a listener of instances has failed", failure);
        } catch (Throwable unspeakable) {
            // A log that fails too, for example because the heap is full, does not end the watch.
        }
    }

    /** Ends the client's threads. Before Java 21 they end when the client is garbage-collected. */
    private static void end(@Nullable HttpClient client) {
        if (client instanceof AutoCloseable threads) {
            boolean interrupted = Thread.interrupted();
            try {
                // On an interrupted thread close() ends what is open instead of waiting for it.
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
        long millis = Math.min(MAX_PAUSE_MILLIS, FIRST_PAUSE_MILLIS << Math.min(failures - 1, 10));
        try {
            boolean isOver =
                    closed.await(ThreadLocalRandom.current().nextLong(millis / 2, millis + 1), TimeUnit.MILLISECONDS);
            assert !isOver || isClosed();
        } catch (InterruptedException e) {
            closed.countDown();
        }
    }

    /** Reads the list of slices. Returns its resource version, from which a watch continues. */
    private String list(HttpClient client) throws IOException {
        HttpResponse<InputStream> answer = ask(client, "", HttpResponse.BodyHandlers.ofInputStream());
        JsonNode list;
        try (InputStream in = limited(answer.body(), MAX_ANSWER_MILLIS)) {
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
        isListDue = false;
        passedOnNanos = System.nanoTime();
        listener.found(Slice.all(slices.values()));
    }

    /** Passes a change on to the listener, at once or together with those until the next list may be passed on. */
    private synchronized void changed() {
        long wait = passedOnNanos + MIN_LIST_INTERVAL_NANOS - System.nanoTime();
        if (wait <= 0) {
            found();
        } else if (!isListDue) {
            isListDue = true;
            later(this::foundLater, wait);
        }
    }

    /**
     * Runs the task later on a thread of its own: the threads of the JDK's common pool may all be waiting for something
     * else.
     */
    private static void later(Runnable task, long nanos) {
        CompletableFuture.delayedExecutor(nanos, TimeUnit.NANOSECONDS, SliceWatch::startOrLater)
                .execute(task);
    }

    private static void startOrLater(Runnable task) {
        try {
            start(task);
        } catch (Throwable e) {
            // No thread could be started, and nothing else would pass the change on to the listener.
            later(task, MIN_LIST_INTERVAL_NANOS);
        }
    }

    private synchronized void foundLater() {
        if (!isListDue || isClosed()) {
            return;
        }
        long wait = passedOnNanos + MIN_LIST_INTERVAL_NANOS - System.nanoTime();
        if (wait > 0) {
            // This task is late, and in the meantime the reading thread has passed a list on.
            later(this::foundLater, wait);
            return;
        }
        try {
            found();
        } catch (Throwable e) {
            // As with a listener that fails on the reading thread, the answer that is being read ends, and the list is
            // read again.
            abort.run();
            log(e);
        }
    }

    /**
     * Keeps a slice, and checks the limits. Watches follow each other without a list between them, so the size limit of
     * each watch does not bound what is kept.
     *
     * @return whether the slice has changed
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

    /** Removes a slice. Returns whether it was there. */
    private synchronized boolean remove(JsonNode object) throws IOException {
        Slice removed = slices.remove(name(object));
        endpoints -= removed == null ? 0 : removed.ready().size();
        return removed != null;
    }

    private synchronized void clear() {
        slices.clear();
        endpoints = 0;
        isListDue = false;
    }

    /**
     * Reads the changes from a resource version on. Returns the version that the watch has reached; null if the list
     * has to be read again, or if this is closed.
     */
    private @Nullable String watch(HttpClient client, String from) throws IOException {
        HttpResponse<InputStream> answer = ask(
                client,
                "&watch=1&allowWatchBookmarks=true&timeoutSeconds=" + WATCH_SECONDS + "&resourceVersion="
                        + encoded(from),
                HttpResponse.BodyHandlers.ofInputStream());
        try (InputStream in = limited(answer.body(), MAX_WATCH_MILLIS)) {
            if (answer.statusCode() == GONE) {
                return null;
            }
            expectOk(answer.statusCode());
            return isClosed() ? null : read(JSON.readerFor(JsonNode.class).readValues(in), from);
        } catch (JacksonException e) {
            // Jackson wraps what reading throws: a connection that breaks is not a watch that has ended.
            throw broken("watch", e);
        }
    }

    /**
     * Returns a limited stream of an answer's body, which the caller has to close. Reading fails after this time, when
     * the watch is closed, or if the body is too long.
     */
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
            // The stream only had to end, so an error at its end does not matter.
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
                            + VisibleText.line(object.path("message").asString(""), MAX_TEXT));
                }
                default -> {
                    // A later version of Kubernetes has added this type.
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

    /**
     * Returns an error whose reason may be text of whoever has answered. It has no cause, since a cause would show that
     * text unescaped.
     */
    private static IOException failure(String of, String why) {
        return new IOException(of + ": " + VisibleText.line(why, MAX_WHY));
    }

    private <T> HttpResponse<T> ask(HttpClient client, String more, HttpResponse.BodyHandler<T> handler)
            throws IOException {
        CompletableFuture<HttpResponse<T>> asked = client.sendAsync(server.request(path + more), handler);
        abort = () -> asked.cancel(true);
        if (isClosed()) {
            asked.cancel(true);
        }
        try {
            return asked.get(MAX_ANSWER_MILLIS, TimeUnit.MILLISECONDS);
        } catch (ExecutionException | CancellationException e) {
            Throwable why = e.getCause() == null ? e : e.getCause();
            throw failure(server.base().toString(), why.toString());
        } catch (TimeoutException e) {
            asked.cancel(true);
            throw new IOException(server.base() + ": no answer within " + MAX_ANSWER_MILLIS + " ms", e);
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

    /**
     * Returns a text from the metadata. It is kept for each slice, or sent in the next request, so it has to be short:
     * an answer may have megabytes of it.
     */
    private static String metadata(JsonNode object, String field) throws IOException {
        String text = object.path("metadata").path(field).asString("");
        if (text.length() > MAX_NAME) {
            throw new IOException(
                    "a " + field + " of " + text.length() + " characters (expected: at most " + MAX_NAME + ")");
        }
        return text;
    }
}
