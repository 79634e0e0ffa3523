package dev.parley.transport.openfeign;

import dev.parley.transport.springapp.BootApplications;
import dev.parley.transport.springapp.SharedContext;
import feign.Client;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.springframework.boot.WebApplicationType;
import org.springframework.cloud.openfeign.FeignClientBuilder;
import org.springframework.cloud.openfeign.FeignClientFactory;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;

/**
 * The Feign clients of one process, which share an application context, and with it the HTTP client. When the last of them leaves, the
 * context ends, and every call in flight with it.
 */
final class FeignClients {
    /** Enough for every caller a trial may have, since one who waits for a connection waits past its deadline. */
    private static final int POOL = 1_000;

    /** Application contexts that this process ever began: Feign confuses clients of the same name in two of them. */
    private static final AtomicLong CONTEXTS = new AtomicLong();

    private final HttpUse use;
    private final AbortableClient unpooled;
    private final SharedContext shared = new SharedContext(this::started);
    /** The number of the one that runs. */
    private volatile long context;

    FeignClients(HttpUse use) {
        this.use = use;
        this.unpooled = new AbortableClient(use == HttpUse.CLOSED);
    }

    private ConfigurableApplicationContext started() {
        context = CONTEXTS.incrementAndGet();
        return BootApplications.builder(FeignApplication.class)
                .web(WebApplicationType.NONE)
                .initializers(starting -> {
                    if (!use.isPooled()) {
                        ((GenericApplicationContext) starting)
                                .registerBean(
                                        Client.class,
                                        () -> unpooled,
                                        definition -> definition.setDestroyMethodName("abort"));
                    }
                })
                .run(BootApplications.arguments(List.of(
                        "spring.cloud.openfeign.httpclient.hc5.enabled=" + use.isPooled(),
                        "spring.cloud.openfeign.httpclient.max-connections=" + POOL,
                        "spring.cloud.openfeign.httpclient.max-connections-per-route=" + POOL)));
    }

    /**
     * Each client wants one {@link #leave}. All of one interface share Feign's own context of that name, with its encoder and decoder: Feign
     * gives none of them back before the application context ends, and a client for each call would fill the heap with them.
     */
    <T> T enter(Class<T> type, String name, String url) {
        ConfigurableApplicationContext running = shared.enter();
        return new FeignClientBuilder(running)
                .forType(type, name)
                .contextId(type.getSimpleName() + "-" + context)
                .url(url)
                .build();
    }

    /** Contexts that Feign keeps for clients here, whether or not those are closed. */
    int kept() {
        try {
            return shared.enter()
                    .getBean(FeignClientFactory.class)
                    .getContextNames()
                    .size();
        } finally {
            shared.leave();
        }
    }

    /** What sends the requests of every client here. */
    Class<?> httpClient() {
        try {
            return shared.enter().getBean(Client.class).getClass();
        } finally {
            shared.leave();
        }
    }

    /** The current thread has its reply. */
    void done() {
        unpooled.done();
    }

    void leave() {
        shared.leave();
    }
}
