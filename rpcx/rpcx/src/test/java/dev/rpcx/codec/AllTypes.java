package dev.rpcx.codec;

import dev.rpcx.schema.Unknown;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletionStage;

/**
 * A service that uses every form that a {@code .proto} file can have. Its export is in {@code src/test/protobuf}, and
 * protoc compiles it there.
 */
interface AllTypes {
    enum Mood {
        UNKNOWN,
        GOOD,
        BAD
    }

    enum Side {
        LEFT,
        RIGHT
    }

    sealed interface Payment permits Card, Transfer, Other {}

    record Card(String number, int month) implements Payment {}

    record Transfer(String iban) implements Payment {}

    @Unknown
    record Other() implements Payment {}

    record Page<T>(List<T> items, Optional<String> next) {}

    record Item(
            String textField,
            boolean boolField,
            int byteField,
            LocalDateTime dateTimeField,
            BigDecimal decimalField,
            float floatField,
            int intField,
            short shortField,
            long longField) {}

    record Hello(
            String name,
            Integer age,
            double weight,
            char initial,
            byte[] picture,
            BigInteger balance,
            UUID id,
            Instant born,
            Duration worked,
            LocalDate hired,
            Mood mood,
            Side side,
            List<Mood> moods,
            List<Integer> scores,
            Set<String> tags,
            Map<String, Long> counts,
            Map<UUID, Item> byId,
            List<List<String>> table,
            Optional<Hello> friend,
            Payment payment) {}

    record Moments(
            Date made,
            LocalTime opens,
            OffsetDateTime starts,
            ZonedDateTime ends,
            URI page,
            Map<LocalTime, URI> links,
            List<Date> seen) {}

    Hello hello(Hello hello);

    CompletionStage<Page<Item>> items(String filter, int limit, Page<Payment> page);

    List<Double> numbers();

    void forget(UUID id);

    Moments moments(Moments moments);
}
