package dev.parley.work.records;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Topology;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.PhotoName;
import dev.parley.spi.records.Records;
import dev.parley.spi.records.StoredPhoto;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class PassingNodeTest {
    private static final Topology STAR = Topology.parse("star:3");
    private static final Photo PHOTO = Contents.photo(1, Contents.PHOTO_BYTES);

    /** A neighbour in this process that keeps photos, and what it was asked. */
    private static final class Keeper implements Neighbour {
        private final List<Record> asked = new ArrayList<>();

        @Override
        public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
            asked.add(request);
            return operation
                    .reply()
                    .cast(
                            request instanceof Photo photo
                                    ? new StoredPhoto(
                                            photo.name(), photo.content().length, Contents.sha256(photo.content()))
                                    : PHOTO);
        }

        @Override
        public long payloadBytes(Record message) {
            return 0;
        }

        @Override
        public void close() {}
    }

    /** Iwanowski, table 6: S3 answers within 4.7 ms in the star, where S2 takes 668 ms: 875 kB do not go there. */
    @Test
    void inAStarTheThirdServiceIsToldOfAPhotoAndIsNotSentIt() {
        Keeper second = new Keeper();
        Keeper third = new Keeper();
        PassingNode first = new PassingNode(STAR.entry(), Map.of("m2", second, "m3", third), Duration.ofSeconds(1));
        StoredPhoto kept = first.handle(Records.UPLOAD, PHOTO);
        assertThat(kept.bytes()).isEqualTo(Contents.PHOTO_BYTES);
        assertThat(second.asked).containsExactly(PHOTO);
        assertThat(third.asked).singleElement().satisfies(request -> {
            assertThat(((Photo) request).name()).isEqualTo(PHOTO.name());
            assertThat(((Photo) request).content()).isEmpty();
        });

        assertThat(first.handle(Records.DOWNLOAD, new PhotoName(PHOTO.name()))).isEqualTo(PHOTO);
        assertThat(second.asked).hasSize(2);
        assertThat(third.asked).as("nothing when a photo is fetched").hasSize(1);
    }
}
