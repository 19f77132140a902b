          if over or empty then vh, vl, uh, ul = 0, 0, 0, 0 end
          es, en, moved = hs, hn, true
        end
      end
