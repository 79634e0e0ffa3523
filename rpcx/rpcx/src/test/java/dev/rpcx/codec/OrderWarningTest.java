package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.Field;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;

/**
 * Tests the warning at the start about fields that are numbered by the order of their declaration. It comes once for
 * each type.
 */
class OrderWarningTest {
    enum Plain {
        RED,
        GREEN
    }

    enum Listed {
        RED,
        GREEN
    }

    enum Key {
        RED,
        GREEN
    }

    enum Numbered {
        @Field(0)
        RED,
        @Field(1)
        GREEN
    }

    record Painted(
            @Field(1) Plain plain,
            @Field(2) List<Listed> listed,
            @Field(3) Map<Key, Plain> keys,
            @Field(4) Numbered numbered) {}

    enum Kind {
        GOOD
    }

    record Locked(String name, Kind kind) {}

    /** Returns the warnings that come while codecs are made. */
    private static List<String> told(Runnable codecs) {
        List<String> told = new CopyOnWriteArrayList<>();
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord record) {
                told.add(record.getMessage());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        Logger logger = Logger.getLogger(Codecs.class.getName());
        logger.addHandler(handler);
        try {
            codecs.run();
        } finally {
            logger.removeHandler(handler);
        }
        return told;
    }

    @Test
    void enumsAreNamedWhereverTheyStand() {
        List<String> told = told(() -> {
            Codecs.of(new Schema(LockFile.none()), Limits.STANDARD).value(Painted.class);
            Codecs.of(new Schema(LockFile.none()), Limits.STANDARD).value(Painted.class);
        });
        assertThat(told.stream().map(text -> text.replaceAll(":.*", "")))
                .containsExactlyInAnyOrder(Plain.class.getName(), Listed.class.getName(), Key.class.getName());
        assertThat(told).allMatch(text -> text.contains("its numbers depend on the order of declaration"));
    }

    @Test
    void typesInALockAreNotNamed() {
        LockFile lock = LockFile.parse(
                "message %s\n  1 name string\n  2 kind %s\nenum %2$s\n  1 GOOD constant\n"
                        .formatted(Locked.class.getName(), Kind.class.getName()),
                "lock");
        assertThat(told(() -> Codecs.of(new Schema(lock), Limits.STANDARD).value(Locked.class)))
                .isEmpty();
        assertThat(told(() ->
                        Codecs.of(new Schema(LockFile.none()), Limits.STANDARD).value(Locked.class)))
                .hasSize(2);
    }
}
