package dev.parley.observed;

import dev.parley.spi.CallLog;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.FileAppender;
import org.apache.logging.log4j.core.config.DefaultConfiguration;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.layout.template.json.JsonTemplateLayout;
import org.apache.logging.log4j.message.MapMessage;

/**
 * Writes lines of the Elastic Common Schema. The time between the services is {@code event.duration}, in nanoseconds.
 * Source: ECS reference 8.x, fields event, service and labels.
 *
 * <p>It has a logger context of its own, so that it does not matter which logging a technology brings or has set up.
 */
final class EcsCallLog implements CallLog {
    private static final String NAME = "parley.calls";
    private static final int BUFFER_BYTES = 64 * 1024;

    private final String service;
    private final String technology;
    private final LoggerContext context = new LoggerContext(NAME);
    private final Logger logger;

    EcsCallLog(Path file, String service, String technology) {
        this.service = service;
        this.technology = technology;
        DefaultConfiguration configuration = new DefaultConfiguration();
        JsonTemplateLayout layout = JsonTemplateLayout.newBuilder()
                .setConfiguration(configuration)
                .setEventTemplateUri("classpath:dev/parley/observed/call.json")
                .build();
        FileAppender appender = FileAppender.newBuilder()
                .setName(NAME)
                .setConfiguration(configuration)
                .setLayout(layout)
                .withFileName(file.toString())
                .setBufferedIo(true)
                .setBufferSize(BUFFER_BYTES)
                .setImmediateFlush(false)
                .build();
        appender.start();
        configuration.addAppender(appender);
        LoggerConfig calls = new LoggerConfig(NAME, Level.INFO, false);
        calls.addAppender(appender, Level.INFO, null);
        configuration.addLogger(NAME, calls);
        context.start(configuration);
        logger = context.getLogger(NAME);
    }

    @Override
    public void called(String peer, String operation, long tookNs, boolean isAnswered, String window) {
        Map<String, Object> fields = new HashMap<>();
        fields.put("peer", peer);
        fields.put("operation", operation);
        fields.put("duration", tookNs);
        fields.put("outcome", isAnswered ? "success" : "failure");
        fields.put("service", service);
        fields.put("technology", technology);
        fields.put("window", window);
        logger.log(Level.INFO, new Fields(fields));
    }

    /** The values that the template takes. */
    private static final class Fields extends MapMessage<Fields, Object> {
        private static final long serialVersionUID = 1;

        Fields(Map<String, Object> fields) {
            super(fields);
        }
    }

    @Override
    public void close() {
        context.stop();
    }
}
