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

    @Test
    void enumsAreNamedWhereverTheyStand() {
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
            Codecs.of(new Schema(LockFile.none()), Limits.STANDARD).value(Painted.class);
            Codecs.of(new Schema(LockFile.none()), Limits.STANDARD).value(Painted.class);
        } finally {
            logger.removeHandler(handler);
        }
        assertThat(told.stream().map(text -> text.replaceAll(":.*", "")))
                .containsExactlyInAnyOrder(Plain.class.getName(), Listed.class.getName(), Key.class.getName());
        assertThat(told).allMatch(text -> text.contains("its numbers depend on the order of declaration"));
    }
}
